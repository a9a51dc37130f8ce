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
    constructor(how, arrows) {
      this.arrows = arrows ?? [];
      this.twin = null;
      this.common = 0;
      this.split = how.querySelector(".split");
      this.scroll = how.querySelector(".scroll");
      this.layer = how.querySelector(".arrows");
      this.pane = how.querySelector(".pane");
      this.bar = how.querySelector(".steps");
      this.all = this.bar.querySelector(".all");
      this.names = [...how.querySelectorAll("th.thread")].map((th) => th.textContent);
      this.rows = [...how.querySelectorAll("tbody > tr:not(.parts)")];
      this.numbers = new Map(this.rows.map((row, i) => [row, i]));
      this.current = null;
      this.bar.hidden = false;
      this.bar.querySelector(".back").addEventListener("click", () => this.go(-1));
      this.bar.querySelector(".on").addEventListener("click", () => this.go(1));
      this.bar.querySelector(".next").addEventListener("click", () => this.goCritical());
      this.all?.addEventListener("click", () => this.openAll());
      const table = how.querySelector(".lanes");
      const rowOf = (event) => event.target.closest("tbody > tr:not(.parts)");
      table.addEventListener("mouseover", (event) => this.draw(rowOf(event) ?? this.current));
      table.addEventListener("mouseleave", () => this.draw(this.current));
      table.addEventListener("click", (event) => {
        const button = event.target.closest(".open");
        if (button) this.open(button);
        else if (this.isStep(rowOf(event))) this.show(rowOf(event));
      });
    }

    isStep(row) {
      return Boolean(row) && !row.classList.contains("elided") && !row.parentElement.hidden;
    }

    // The next step in a direction that fits.
    find(direction, fits) {
      let i = this.current ? this.numbers.get(this.current) : direction > 0 ? -1 : this.rows.length;
      do i += direction; while (i >= 0 && i < this.rows.length && !(this.isStep(this.rows[i]) && fits(this.rows[i])));
      return this.rows[i];
    }

    go(direction) {
      if (this.current || direction > 0) this.show(this.find(direction, () => true));
    }

    goCritical() {
      const fits = (row) => row.classList.contains("critical");
      this.show(this.find(1, fits) ?? this.rows.find(fits));
    }

    goEnd(direction) {
      this.current?.removeAttribute("aria-current");
      this.current = null;
      this.show(this.find(direction, () => true));
    }

    // Shows or hides the steps that a row stands for.
    open(button, expand = button.getAttribute("aria-expanded") !== "true") {
      button.setAttribute("aria-expanded", String(expand));
      button.closest("tbody").nextElementSibling.hidden = !expand;
      const buttons = [...this.scroll.querySelectorAll(".open")];
      this.all.setAttribute("aria-pressed", String(buttons.every((b) => b.getAttribute("aria-expanded") === "true")));
      this.draw(this.current);
    }

    openAll() {
      const expand = this.all?.getAttribute("aria-pressed") !== "true";
      for (const button of this.scroll.querySelectorAll(".open")) this.open(button, expand);
    }

    // Makes a row the current step. What two executions have in common is stepped through in both.
    show(row, alone) {
      if (!row) return;
      const { row: number } = row.dataset;
      if (!alone && this.twin && Number(number) < this.common) {
        this.twin.show(this.twin.rows.find((other) => other.dataset.row === number), true);
      }
      this.current?.removeAttribute("aria-current");
      this.current = row;
      row.setAttribute("aria-current", "step");
      this.split.classList.add("stepping");
      this.excerpt(row);
      const lane = row.querySelector(".lane");
      if (!alone) lane.scrollIntoView({ block: "nearest", inline: "nearest" });
      this.draw(row);
      const steps = this.rows.filter((one) => this.isStep(one));
      const says = lane.dataset.thread ? lane.textContent : `${this.names[lane.dataset.lane]}: ${lane.textContent}`;
      this.bar.querySelector(".at").textContent = `${steps.indexOf(row) + 1} of ${steps.length}: ${says}`;
    }

    // The source around the step.
    excerpt(row) {
      const lines = data.files[row.dataset.file] ?? {};
      const current = Number(row.dataset.line);
      this.values(row);
      this.pane.hidden = !row.dataset.file && !this.pane.querySelector("dt");
      if (this.pane.hidden) return;
      this.pane.querySelector(".site").textContent = `${row.dataset.file}:${current}`;
      const source = this.pane.querySelector(".source");
      source.replaceChildren();
      const around = this.twin || innerWidth < 900 ? 3 : 8;
      for (let n = current - around; n <= current + around; n += 1) {
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
        const { object, value } = one.dataset;
        // Of the steps that are left out only those count that are about a variable of the others.
        if (object && (this.isStep(one) || now.has(object))) now.set(object, [value, one === row]);
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
      const number = this.numbers.get(row);
      const box = this.scroll.getBoundingClientRect();
      // A step that is left out is where the row is that stands for it.
      const seen = (r) => (r.parentElement.hidden ? r.parentElement.previousElementSibling.lastElementChild : r);
      const middle = (r) => {
        const cell = (seen(r).querySelector(".lane, .open") ?? seen(r)).getBoundingClientRect();
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

  // Keys: j and k (or the arrows inside a table) step, n goes to the next step that makes the finding, o shows all steps.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    const here = event.target.closest("article") ?? articles.find((a) => !a.hidden && all.has(a) && a.getBoundingClientRect().bottom > innerHeight / 3);
    const steps = all.get(event.target.closest(".how")) ?? all.get(here);
    if (!steps) return;
    const inTable = event.target.closest(".scroll");
    const key = event.key;
    if (key === "j" || (inTable && key === "ArrowDown")) steps.go(1);
    else if (key === "k" || (inTable && key === "ArrowUp")) steps.go(-1);
    else if (key === "n") steps.goCritical();
    else if (key === "o") steps.openAll();
    else if (inTable && key === "Home") steps.goEnd(1);
    else if (inTable && key === "End") steps.goEnd(-1);
    else return;
    event.preventDefault();
  });
})();
