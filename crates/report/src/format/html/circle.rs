//! A deadlock as a circle: each thread holds a lock that the next one waits for.

use std::f64::consts::TAU;

use selvedge_model::Kind;

use crate::{Case, Role};

/// A drawing of threads, locks and the lines between them.
pub(super) struct Circle {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    /// What it shows, for readers who do not see it.
    pub(super) description: String,
}

pub(super) struct Node {
    pub(super) name: String,
    pub(super) is_thread: bool,
    pub(super) left: i64,
    pub(super) top: i64,
    pub(super) x: i64,
    pub(super) y: i64,
}

pub(super) struct Edge {
    /// `waits for`, or `is held by`.
    pub(super) says: &'static str,
    pub(super) waits: bool,
    pub(super) path: String,
    pub(super) x: i64,
    pub(super) y: i64,
}

/// Half of the size of a node.
const HALF: (f64, f64) = (74.0, 18.0);

impl Circle {
    /// Of a deadlock of which each thread waits for a lock that another one holds.
    pub(super) fn of(case: &Case) -> Option<Circle> {
        if case.kind != Kind::Deadlock {
            return None;
        }
        let mut names: Vec<(String, bool)> = Vec::new();
        let mut said: Vec<String> = Vec::new();
        for place in &case.places {
            let Role::Acquire(lock) = &place.role else { return None };
            let holds = |p: &&crate::Place| p.locks().iter().any(|l| l.name == *lock);
            let holder = case.places.iter().find(holds)?;
            names.push((place.thread.clone(), true));
            names.push((lock.clone(), false));
            said.push(format!("{} waits for {lock}, which {} holds", place.thread, holder.thread));
        }
        if names.len() < 4 {
            return None;
        }
        let count = names.len() as f64;
        let radius = 62.0 + 14.0 * count;
        let (width, height) = (2.0 * (radius + HALF.0) + 80.0, 2.0 * (radius + HALF.1) + 24.0);
        let at = |i: usize| {
            let angle = TAU * (i as f64) / count - TAU / 4.0;
            (width / 2.0 + radius * 1.15 * angle.cos(), height / 2.0 + radius * angle.sin())
        };
        let nodes = names.iter().enumerate().map(|(i, (name, is_thread))| {
            let (x, y) = at(i);
            Node {
                name: shortened(name),
                is_thread: *is_thread,
                left: (x - HALF.0) as i64,
                top: (y - HALF.1) as i64,
                x: x as i64,
                y: y as i64,
            }
        });
        let edges = (0..names.len()).map(|i| {
            let (from, to) = (at(i), at((i + 1) % names.len()));
            let (start, end) = (border(from, to), border(to, from));
            let waits = names[i].1;
            Edge {
                says: if waits { "waits for" } else { "is held by" },
                waits,
                path: format!("M{:.0} {:.0} L{:.0} {:.0}", start.0, start.1, end.0, end.1),
                x: ((start.0 + end.0) / 2.0) as i64,
                y: ((start.1 + end.1) / 2.0) as i64,
            }
        });
        Some(Circle {
            width: width as u32,
            height: height as u32,
            nodes: nodes.collect(),
            edges: edges.collect(),
            description: said.join("; "),
        })
    }
}

/// Where the line from one node to another leaves its box.
fn border(from: (f64, f64), to: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let scale = (HALF.0 / dx.abs().max(0.001)).min(HALF.1 / dy.abs().max(0.001)).min(0.45);
    (from.0 + dx * scale, from.1 + dy * scale)
}

/// Names of any length, in a box of fixed size.
fn shortened(name: &str) -> String {
    const FITS: usize = 18;
    match name.chars().count() > FITS {
        true => name.chars().take(FITS - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}
