"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const articles = [...document.querySelectorAll("article.finding")];

  // The filter: words, kind and status.
  const filter = document.querySelector(".filter");
  if (filter) {
    filter.hidden = false;
    const apply = () => {
      const form = new FormData(filter);
      const words = form.get("words").toLowerCase().split(/\s+/).filter(Boolean);
      const kind = form.get("kind");
      const statuses = form.getAll("status");
      let shown = 0;
      for (const article of articles) {
        const { search, kind: its, status } = article.dataset;
        const fits = (!kind || its === kind) && statuses.includes(status) && words.every((w) => search.includes(w));
        article.hidden = !fits;
        document.querySelector(`nav li[data-of="${article.id}"]`).hidden = !fits;
        shown += fits ? 1 : 0;
      }
      filter.querySelector(".matches").textContent = shown === articles.length ? "" : `${shown} of ${articles.length}`;
    };
    filter.addEventListener("input", apply);
    filter.addEventListener("submit", (event) => event.preventDefault());
    filter.querySelector(".theme").addEventListener("click", () => {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    });
  }

  // The entry of the finding that is in view.
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  articles.forEach((article) => seen.observe(article));

  const svg = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // One interleaving that can be stepped through.
  class Steps {
    constructor(article, arrows) {
      this.arrows = arrows ?? [];
      this.twin = null;
      this.common = 0;
      this.split = article.querySelector(".split");
      this.scroll = article.querySelector(".scroll");
      this.layer = article.querySelector(".arrows");
      this.pane = article.querySelector(".pane");
      this.bar = article.querySelector(".steps");
      this.rows = [...article.querySelectorAll("tr[data-row]")];
      this.article = article;
      this.steps = this.rows.filter((row) => !row.classList.contains("elided"));
      this.at = -1;
      this.bar.hidden = false;
      this.bar.querySelector(".back").addEventListener("click", () => this.go(this.at - 1));
      this.bar.querySelector(".on").addEventListener("click", () => this.go(this.at + 1));
      this.bar.querySelector(".next").addEventListener("click", () => this.goCritical());
      for (const row of this.rows) {
        row.addEventListener("mouseenter", () => this.draw(row));
        row.addEventListener("mouseleave", () => this.draw(this.steps[this.at]));
        row.addEventListener("click", () => this.go(this.steps.indexOf(row)));
      }
    }

    // What two executions have in common is stepped through in both.
    go(index, alone) {
      if (index < 0 || index >= this.steps.length) return;
      if (!alone && this.twin && Number(this.steps[index].dataset.row) < this.common) this.twin.go(index, true);
      this.steps[this.at]?.removeAttribute("aria-current");
      this.at = index;
      const row = this.steps[index];
      row.setAttribute("aria-current", "step");
      this.split.classList.add("stepping");
      this.show(row);
      if (!alone) row.querySelector(".lane").scrollIntoView({ block: "nearest", inline: "nearest" });
      this.draw(row);
      const thread = row.closest("table").tHead.rows[0].cells[row.querySelector(".lane").cellIndex].textContent;
      this.bar.querySelector(".at").textContent = `${index + 1} of ${this.steps.length}: ${thread}: ${row.querySelector(".lane").textContent}`;
    }

    goCritical() {
      const next = this.steps.findIndex((row, i) => i > this.at && row.classList.contains("critical"));
      this.go(next >= 0 ? next : this.steps.findIndex((row) => row.classList.contains("critical")));
    }

    // The source around the step.
    show(row) {
      const lines = data.files[row.dataset.file] ?? {};
      const current = Number(row.dataset.line);
      this.values(row);
      this.pane.hidden = !row.dataset.file && !this.pane.querySelector("dt");
      if (this.pane.hidden) return;
      this.pane.querySelector(".site").textContent = `${row.dataset.file}:${current}`;
      const source = this.pane.querySelector(".source");
      source.replaceChildren();
      for (let n = current - 8; n <= current + 8; n += 1) {
        if (lines[n] === undefined) continue;
        const line = document.createElement("span");
        line.className = n === current ? "line marked" : "line";
        const number = document.createElement("span");
        number.className = "number";
        number.textContent = n;
        line.append(number, lines[n]);
        source.append(line, "\n");
      }
    }

    // The value of every variable that has been seen so far.
    values(row) {
      const now = new Map();
      for (const one of this.rows) {
        if (one.dataset.object) now.set(one.dataset.object, [one.dataset.value, one === row]);
        if (one === row) break;
      }
      const list = this.pane.querySelector(".values");
      list.replaceChildren();
      for (const [name, [value, current]] of now) {
        const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
        dt.textContent = name;
        dd.textContent = value;
        if (current) dd.className = "now";
        list.append(dt, dd);
      }
    }

    // Arrows from and to a row: what it takes from another thread, and what it hands on.
    draw(row) {
      this.layer.replaceChildren();
      if (!row) return;
      const number = Number(row.dataset.row);
      const box = this.scroll.getBoundingClientRect();
      const middle = (r) => {
        const cell = (r.querySelector(".lane") ?? r).getBoundingClientRect();
        return { left: cell.left - box.left + this.scroll.scrollLeft, right: cell.right - box.left + this.scroll.scrollLeft, y: (cell.top + cell.bottom) / 2 - box.top + this.scroll.scrollTop };
      };
      for (const [from, to] of this.arrows) {
        if (from !== number && to !== number) continue;
        const [a, b] = [middle(this.rows[from]), middle(this.rows[to])];
        const rightwards = b.left > a.left;
        const [x1, x2] = rightwards ? [a.right - 6, b.left + 2] : [a.left + 6, b.right - 2];
        const bend = Math.max(24, Math.abs(x2 - x1) / 2) * (rightwards ? 1 : -1);
        this.layer.append(svg("path", { d: `M${x1} ${a.y} C${x1 + bend} ${a.y} ${x2 - bend} ${b.y} ${x2} ${b.y}` }));
        const side = rightwards ? -7 : 7;
        this.layer.append(svg("path", { class: "head", d: `M${x2} ${b.y} l${side} -4 v8 z` }));
      }
    }
  }

  const all = new Map();
  for (const article of articles) {
    const hows = [...article.querySelectorAll(".how")];
    const steps = hows.map((how, i) => new Steps(how, data.arrows[article.id]?.[i]));
    if (steps.length === 2) {
      const common = Number(article.querySelector(".hows").dataset.common);
      steps.forEach((one, i) => Object.assign(one, { twin: steps[1 - i], common }));
    }
    hows.forEach((how, i) => all.set(how, steps[i]));
    // Outside of an interleaving, keys step through the one that shows the finding.
    if (steps.length) all.set(article, steps[steps.length - 1]);
  }

  // Keys: j and k (or the arrows inside a table) step, n goes to the next step that makes the finding.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    const here = event.target.closest("article") ?? articles.find((a) => !a.hidden && all.has(a) && a.getBoundingClientRect().bottom > innerHeight / 3);
    const steps = all.get(event.target.closest(".how")) ?? all.get(here);
    if (!steps) return;
    const inTable = event.target.closest(".scroll");
    const key = event.key;
    if (key === "j" || (inTable && key === "ArrowDown")) steps.go(steps.at + 1);
    else if (key === "k" || (inTable && key === "ArrowUp")) steps.go(steps.at - 1);
    else if (key === "n") steps.goCritical();
    else if (inTable && key === "Home") steps.go(0);
    else if (inTable && key === "End") steps.go(steps.steps.length - 1);
    else return;
    event.preventDefault();
  });
})();
