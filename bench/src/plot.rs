//! Bars in SVG: for each row of a table, one bar for each alternative.

use std::fmt::Write;
use std::path::Path;

/// A row of bars: its name, and for each alternative the value and the worst one.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) bars: Vec<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const NAMES: f64 = 120.0;
const FIGURES: f64 = 110.0;
const BAR: f64 = 13.0;
const GAP: f64 = 14.0;
const TOP: f64 = 64.0;
const COLOURS: [&str; 6] = ["#8a8f98", "#d08c2f", "#3f7fbf", "#2f9e6e", "#9467bd", "#c0504d"];

/// The plot as text. Values are ratios; the thin line behind a bar ends at the worst run.
pub(crate) fn svg(title: &str, alternatives: &[String], rows: &[Row]) -> String {
    let all = rows.iter().flat_map(|row| row.bars.iter().map(|&(_, worst)| worst));
    let scale = (WIDTH - NAMES - FIGURES) / all.fold(1.0, f64::max);
    let height = rows.iter().map(|row| BAR * row.bars.len() as f64 + GAP).sum::<f64>() + TOP;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    let mut x = 8.0;
    for (name, colour) in alternatives.iter().zip(COLOURS.iter().cycle()) {
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"32\" width=\"11\" height=\"11\" fill=\"{colour}\"/><text x=\"{}\" y=\"42\">{}</text>",
            x + 16.0,
            escaped(name)
        );
        x += 34.0 + 6.6 * name.chars().count() as f64;
    }
    let one = NAMES + scale;
    let _ = writeln!(
        text,
        "<line x1=\"{one:.1}\" x2=\"{one:.1}\" y1=\"{:.1}\" y2=\"{height}\" stroke=\"#999999\" stroke-dasharray=\"3 3\"/>",
        TOP - 8.0
    );
    let mut y = TOP;
    for row in rows {
        let middle = y + BAR * row.bars.len() as f64 / 2.0 + 4.0;
        let _ = writeln!(text, "<text x=\"8\" y=\"{middle:.1}\">{}</text>", escaped(&row.name));
        for (&(value, worst), colour) in row.bars.iter().zip(COLOURS.iter().cycle()) {
            let (end, line) = (value * scale, worst * scale);
            let _ = writeln!(
                text,
                "<rect x=\"{NAMES}\" y=\"{y:.1}\" width=\"{end:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>\
                 <line x1=\"{NAMES}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#555555\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{value:.2}</text>",
                BAR - 2.0,
                NAMES + line,
                y + BAR / 2.0 - 1.0,
                y + BAR / 2.0 - 1.0,
                NAMES + line.max(end) + 6.0,
                y + BAR - 3.0,
            );
            y += BAR;
        }
        y += GAP;
    }
    text + "</svg>\n"
}

/// Writes the plot to a file.
pub(crate) fn write(
    path: &Path,
    title: &str,
    alternatives: &[String],
    rows: &[Row],
) -> Result<(), String> {
    std::fs::write(path, svg(title, alternatives, rows))
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// The arguments of a benchmark that draws: `[ROUNDS] [NAME…] [--svg FILE]`.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Arguments<'a> {
    pub(crate) rounds: usize,
    pub(crate) names: Vec<&'a str>,
    pub(crate) svg: Option<&'a Path>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn parse(args: &[&'a str], rounds: usize) -> Result<Arguments<'a>, String> {
        let mut names = args.to_vec();
        let mut svg = None;
        if let Some(at) = names.iter().position(|arg| *arg == "--svg") {
            let file = names.get(at + 1).copied().ok_or("--svg needs the name of a file")?;
            svg = Some(Path::new(file));
            names.drain(at..at + 2);
        }
        let said = names.first().and_then(|first| first.parse().ok());
        if said.is_some() {
            names.remove(0);
        }
        let rounds = said.unwrap_or(rounds);
        if rounds == 0 {
            return Err("there must be at least one round".to_owned());
        }
        Ok(Arguments { rounds, names, svg })
    }

    /// Whether something with this name is wanted.
    pub(crate) fn want(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| name.contains(wanted))
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_a_bar_and_its_figure() {
        let rows = [
            Row { name: "a<b".into(), bars: vec![(2.0, 2.5), (0.5, 0.5)] },
            Row { name: "c".into(), bars: vec![(4.0, 4.0), (1.25, 3.0)] },
        ];
        let text = svg("costs", &["one".into(), "two".into()], &rows);
        for figure in ["2.00", "0.50", "4.00", "1.25", "a&lt;b"] {
            assert!(text.contains(&format!(">{figure}</text>")), "{figure}: {text}");
        }
        // The widest bar fills the place for bars, and one half as long half of it.
        let wide = WIDTH - NAMES - FIGURES;
        assert!(text.contains(&format!("width=\"{wide:.1}\"")), "{text}");
        assert!(text.contains(&format!("width=\"{:.1}\"", wide / 2.0)), "{text}");
    }

    #[test]
    fn rounds_names_and_a_file_are_told_apart() {
        let parsed = Arguments::parse(&["3", "--svg", "f", "x"], 5).expect("they are right");
        assert_eq!(parsed, Arguments { rounds: 3, names: vec!["x"], svg: Some(Path::new("f")) });
        assert!(parsed.want("xz") && !parsed.want("zstd"));
        let none = Arguments::parse(&[], 5).expect("none is needed");
        assert!(none.rounds == 5 && none.want("zstd"));
        assert!(Arguments::parse(&["--svg"], 5).is_err());
        assert!(Arguments::parse(&["0"], 5).is_err());
    }
}
