/* curves.js - a chart for each number of the runs: drawn and zoomed by uPlot, read by mouse and keys, with a table behind it.
 *
 * In:  report, axes.   Out: the section #curves.
 * The one idea: uPlot has axes, scales, zoom and the cursor; the lines, of which each has places of its own, are drawn on its
 * canvas in one hook, and the readout says what is nearest.
 */
"use strict";

const curves = (function () {
    const { state, element, number, quantity } = report;
    const section = document.getElementById("curves");
    const charts = [];
    const READ_MOST = 6; // lines in a readout
    const NAMED_MOST = 8; // lines beside whose growth steps stand their names
    const TABLE_PLACES = 10;
    const POINTS_MOST = 40; // of a line that has a dot at each, and of which none is cut off

    function css(name) {
        return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    }

    function placeText(by, x) {
        if (by === "step") return "step " + number(x);
        if (by === "seconds") return timeText(x);
        return quantity(x) + " " + axes.titles[by];
    }

    function timeText(seconds) {
        if (seconds < 100) return number(Number(seconds.toPrecision(4))) + " s";
        if (seconds < 6000) return (seconds / 60).toFixed(1) + " min";
        return (seconds / 3600).toFixed(2) + " h";
    }

    /* "2.3457", of a bin "2.3457 (2.31 to 2.402, 40 points)", of seeds "2.3457 ±0.01 (3 seeds)" */
    function valueText(line, i) {
        const v = number(line.mean[i]);
        if (line.mean[i] == null || !line.least) return v;
        if (line.runs > 1) return v + " \u00b1" + number(Number((line.most[i] - line.mean[i]).toPrecision(3))) + " (" + line.runs + " seeds)";
        return v + " (" + number(line.least[i]) + " to " + number(line.most[i]) + ")";
    }

    /* ---- what a chart shows ---- */

    /* The least and greatest of what is drawn between two places. */
    function heights(lines, from, to, positive) {
        let least = Infinity;
        let most = -Infinity;
        for (const line of lines)
            for (let i = 0; i < line.x.length; i++) {
                if (line.x[i] < from || line.x[i] > to || line.mean[i] == null) continue;
                const low = line.least ? line.least[i] : line.mean[i];
                const high = line.most ? line.most[i] : line.mean[i];
                if (!positive || low > 0) least = Math.min(least, low);
                if (!positive || high > 0) most = Math.max(most, high);
            }
        return least <= most ? [least, most] : null;
    }

    function widths(lines, positive) {
        let least = Infinity;
        let most = -Infinity;
        for (const line of lines)
            for (const x of line.x) {
                if (positive && x <= 0) continue;
                least = Math.min(least, x);
                most = Math.max(most, x);
            }
        if (!(least <= most)) return [positive ? 1 : 0, positive ? 10 : 1];
        return least < most ? [least, most] : [least - Math.abs(least) * 0.1 - 1e-9, most + Math.abs(most) * 0.1 + 1e-9];
    }

    /* Curves that begin high, as losses do: what lies above all values behind the first twentieth is cut off, and told. */
    function heightRange(chart, from, to) {
        const whole = from <= chart.from && to >= chart.to;
        const all = heights(chart.lines, from, to, state.logY);
        chart.cut = null;
        if (!all) return [state.logY ? 1 : 0, state.logY ? 10 : 1];
        let [least, most] = all;
        const few = chart.lines.some((line) => line.x.length <= POINTS_MOST);
        if (whole && chart.falls && !few && !state.logY && !state.logX) {
            const later = heights(chart.lines, from + (to - from) / 20, to, false);
            if (later && later[1] < most) {
                chart.cut = most;
                most = later[1];
                least = later[0];
            }
        }
        const flat = most - least <= 1e-9 * Math.abs(most); // but for how means are rounded
        if (state.logY) return flat ? [least / 2, most * 2] : [least / 1.05, most * 1.05];
        const room = !flat ? (most - least) * 0.04 : Math.abs(most) * 0.1 || 1;
        return [least - room, most + room];
    }

    /* ---- drawing ---- */

    function drawLine(u, line, wide) {
        const { ctx } = u;
        const x = (i) => u.valToPos(line.x[i], "x", true);
        const y = (v) => u.valToPos(v, "y", true);
        ctx.strokeStyle = ctx.fillStyle = report.colour(line.run);
        ctx.lineWidth = wide * devicePixelRatio;
        ctx.lineJoin = "round";
        if (line.runs > 1) {
            ctx.globalAlpha = 0.18; // the interval
            ctx.beginPath();
            for (let i = 0; i < line.x.length; i++) ctx.lineTo(x(i), y(line.most[i]));
            for (let i = line.x.length; i-- > 0; ) ctx.lineTo(x(i), y(line.least[i]));
            ctx.fill();
            ctx.globalAlpha = 1;
        }
        ctx.beginPath();
        let pen = false;
        let last = 0;
        for (let i = 0; i < line.x.length; i++) {
            const ok = line.mean[i] != null && !(state.logX && line.x[i] <= 0) && !(state.logY && line.mean[i] <= 0);
            if (ok && line.least && line.runs === 1) {
                // a bin: from its one end to the other, beginning at that nearer to the line so far
                const down = pen && Math.abs(line.most[i] - last) < Math.abs(line.least[i] - last);
                const low = state.logY && line.least[i] <= 0 ? line.mean[i] : line.least[i];
                const ends = down ? [line.most[i], low] : [low, line.most[i]];
                ctx[pen ? "lineTo" : "moveTo"](x(i), y(ends[0]));
                ctx.lineTo(x(i), y(ends[1]));
                last = ends[1];
            } else if (ok) {
                ctx[pen ? "lineTo" : "moveTo"](x(i), y(line.mean[i]));
                last = line.mean[i];
            }
            pen = ok;
        }
        ctx.stroke();
        if (line.x.length <= POINTS_MOST)
            for (let i = 0; i < line.x.length; i++) {
                if (line.mean[i] == null) continue;
                ctx.beginPath();
                ctx.arc(x(i), y(line.mean[i]), 2.4 * devicePixelRatio, 0, 2 * Math.PI);
                ctx.fill();
            }
    }

    /* Dashed lines where runs have grown, with the names of the steps, of a few runs. */
    function drawGrowth(u, lines) {
        const { ctx, bbox } = u;
        let named = 0;
        ctx.font = 12 * devicePixelRatio + "px system-ui, sans-serif";
        ctx.lineWidth = devicePixelRatio;
        for (const line of lines)
            for (const step of line.run.growth) {
                const at = u.valToPos(step[state.by], "x", true);
                if (!(at >= bbox.left && at <= bbox.left + bbox.width)) continue;
                ctx.strokeStyle = ctx.fillStyle = report.colour(line.run);
                ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
                ctx.beginPath();
                ctx.moveTo(at, bbox.top);
                ctx.lineTo(at, bbox.top + bbox.height);
                ctx.stroke();
                ctx.setLineDash([]);
                if (lines.length > NAMED_MOST) continue;
                const left = at + ctx.measureText(step.name).width + 8 * devicePixelRatio > bbox.left + bbox.width;
                ctx.textAlign = left ? "right" : "left";
                ctx.fillText(step.name, at + (left ? -4 : 4) * devicePixelRatio, bbox.top + (12 + 15 * (named++ % 4)) * devicePixelRatio);
            }
    }

    function draw(chart, u) {
        const { ctx, bbox } = u;
        ctx.save();
        ctx.beginPath();
        ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
        ctx.clip();
        const many = chart.lines.length > 20;
        drawGrowth(u, chart.lines);
        for (const line of chart.lines) if (line.run !== state.focus) drawLine(u, line, many ? 1 : 1.6);
        for (const line of chart.lines) if (line.run === state.focus) drawLine(u, line, 3);
        ctx.restore();
    }

    /* ---- reading ---- */

    function nearestLines(u, chart) {
        const at = u.posToVal(u.cursor.left, "x");
        const all = chart.lines
            .map(function (line) {
                const i = axes.nearest(line.x, at);
                return { line, i, far: line.mean[i] == null ? Infinity : Math.abs(u.valToPos(line.mean[i], "y") - u.cursor.top) };
            })
            .filter((one) => Number.isFinite(one.far));
        return all.sort((a, b) => a.far - b.far);
    }

    function read(chart, u) {
        if (!(u.cursor.left >= 0)) {
            chart.said.replaceChildren(chart.hint);
            return;
        }
        const near = nearestLines(u, chart);
        if (!near.length) return;
        const shown = near.slice(0, READ_MOST).sort((a, b) => a.line.mean[a.i] - b.line.mean[b.i]);
        const parts = [element("span", { class: "at" }, "at " + placeText(state.by, near[0].line.x[near[0].i]))];
        for (const one of shown) {
            const mark = element("span", { class: "dot", "aria-hidden": "true" });
            mark.style.background = report.colour(one.line.run);
            parts.push(element("span", { class: one === near[0] ? "value near" : "value" }, mark, one.line.name + " " + valueText(one.line, one.i)));
        }
        if (near.length > shown.length) parts.push(element("span", {}, "and " + (near.length - shown.length) + " further away"));
        chart.said.replaceChildren(...parts);
        chart.said.style.minHeight = Math.max(parseFloat(chart.said.style.minHeight), chart.said.offsetHeight) + "px"; // what is below does not move back
        if (near[0].far < 24) focusOn(near[0].line.run);
    }

    let waiting = false;
    function focusOn(run) {
        if (state.focus === run) return;
        state.focus = run;
        for (const row of document.querySelectorAll("#runs tr[data-run]")) row.classList.toggle("focus", !!run && Number(row.dataset.run) === run.number);
        if (!waiting)
            requestAnimationFrame(function () {
                waiting = false;
                for (const chart of charts) if (chart.plot) chart.plot.redraw(false);
            });
        waiting = true;
    }

    /* The keys of a chart: to the next point, to the next line, zoom. */
    function key(chart, event) {
        const u = chart.plot;
        if (event.target !== chart.figure || !u || !chart.lines.length) return;
        const { min, max } = u.scales.x;
        const by = event.shiftKey ? 10 : 1;
        const zoom = (wide) => {
            const at = chart.at != null ? chart.lines[chart.at].x[chart.point] : (min + max) / 2;
            const lo = Math.max(chart.from, at - (at - min) * wide);
            const hi = Math.min(chart.to, at + (max - at) * wide);
            u.setScale("x", { min: lo, max: hi });
        };
        const moves = { ArrowRight: by, ArrowLeft: -by, Home: -Infinity, End: Infinity };
        if (event.key in moves) {
            if (chart.at == null) {
                chart.at = Math.max(0, chart.lines.findIndex((line) => line.run === state.focus));
                chart.point = event.key === "ArrowLeft" || event.key === "End" ? chart.lines[chart.at].x.length - 1 : 0;
            } else {
                chart.point = Math.min(Math.max(chart.point + moves[event.key], 0), chart.lines[chart.at].x.length - 1);
            }
        } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && chart.at != null) {
            const x = chart.lines[chart.at].x[chart.point];
            const order = chart.lines.map((line, i) => [i, axes.valueAt(line, x)]).filter((one) => one[1] != null).sort((a, b) => a[1] - b[1]);
            const place = order.findIndex((one) => one[0] === chart.at) + (event.key === "ArrowUp" ? 1 : -1);
            if (order[place]) {
                chart.at = order[place][0];
                chart.point = axes.nearest(chart.lines[chart.at].x, x);
            }
        } else if (event.key === "+" || event.key === "-") {
            zoom(event.key === "+" ? 0.5 : 2);
        } else if (event.key === "Escape" || event.key === "0") {
            chart.at = null;
            u.setScale("x", { min: chart.from, max: chart.to });
            u.setCursor({ left: -10, top: -10 });
            focusOn(null);
        } else {
            return;
        }
        event.preventDefault();
        if (chart.at == null) return;
        const line = chart.lines[chart.at];
        u.setCursor({ left: u.valToPos(line.x[chart.point], "x"), top: u.valToPos(line.mean[chart.point], "y") });
        focusOn(line.run);
    }

    /* ---- the table behind a chart ---- */

    function fillTable(chart) {
        const places = [];
        for (let i = 0; i <= TABLE_PLACES; i++) places.push(chart.from + ((chart.to - chart.from) * i) / TABLE_PLACES);
        const head = element("tr", {}, element("th", { scope: "col" }, "run"), element("th", { scope: "col", class: "n" }, "least"),
            element("th", { scope: "col", class: "n" }, "last"), ...places.map((x) => element("th", { scope: "col", class: "n" }, placeText(state.by, x))));
        const rows = chart.lines.map(function (line) {
            const known = line.mean.filter((v) => v != null);
            const cell = (v) => element("td", { class: "n" }, v == null ? "\u2013" : number(v));
            return element("tr", {}, element("th", { scope: "row" }, line.name),
                cell(known.length ? known.reduce((a, b) => Math.min(a, b)) : null),
                element("td", { class: "n" }, number(line.mean[line.mean.length - 1])),
                ...places.map((x) => cell(axes.valueAt(line, x))));
        });
        chart.table.replaceChildren(element("table", {}, element("caption", { class: "small" },
            chart.name + " as it is drawn; between two points lines are straight"), element("thead", {}, head), element("tbody", {}, ...rows)));
    }

    /* ---- a chart ---- */

    function plot(chart) {
        const axis = { stroke: () => css("--soft"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { stroke: () => css("--line"), width: 1 },
            font: "12px system-ui, sans-serif" };
        const ticks = (u, values) => values.map((v) => (v == null ? "" : quantity(Number(v.toPrecision(6)))));
        const yTicks = (u, values) => values.map((v) => (v == null ? "" : Math.abs(v) >= 1e4 ? quantity(v) : String(Number(v.toPrecision(6)))));
        chart.box.replaceChildren();
        chart.plot = new uPlot(
            {
                width: chart.box.clientWidth || 320,
                height: 260,
                legend: { show: false },
                cursor: { drag: { x: true, y: true, uni: 20 }, points: { show: false } },
                scales: {
                    x: { time: false, distr: state.logX ? 3 : 1, range: (u, min, max) => (min == null ? [chart.from, chart.to] : [min, max]) },
                    y: { distr: state.logY ? 3 : 1, range: (u) => heightRange(chart, u.scales.x.min ?? chart.from, u.scales.x.max ?? chart.to) },
                },
                axes: [{ ...axis, values: ticks, size: 36 }, { ...axis, values: yTicks, size: 58 }],
                series: [{}, { paths: () => null, points: { show: false } }],
                hooks: { draw: [(u) => draw(chart, u)], setCursor: [(u) => read(chart, u)], setScale: [(u, name) => name === "y" && tell(chart)] },
            },
            [[chart.from, chart.to], [null, null]],
            chart.box,
        );
    }

    /* What is under a chart: what is cut off, what was no number. */
    function tell(chart) {
        const odd = chart.lines.filter((line) => line.odd);
        const words = [];
        if (chart.cut != null) words.push("The beginning, up to " + number(Number(chart.cut.toPrecision(3))) + ", is cut off; log y shows it.");
        if (odd.length)
            words.push("Not a number or infinite: " + odd.slice(0, 8).map((line) => line.name + " from step " + number(line.oddFrom) + " on (" + line.odd +
                (line.odd === 1 ? " point)" : " points)")).join(", ") + (odd.length > 8 ? " and " + (odd.length - 8) + " more runs" : "") + "; lines have gaps there.");
        chart.caption.textContent = words.join(" ");
    }

    function update(chart) {
        chart.lines = axes.lines(chart.name);
        [chart.from, chart.to] = widths(chart.lines, state.logX);
        chart.at = null;
        chart.figure.hidden = !chart.lines.length;
        chart.figure.setAttribute("aria-label", chart.name + " by " + axes.titles[state.by] + ", " + chart.lines.length +
            (chart.lines.length === 1 ? " line" : " lines") + ". Left and right arrows read its points, up and down go to other lines, plus and minus zoom, 0 shows all.");
        chart.hint = chart.lines.length + (chart.lines.length === 1 ? " line" : " lines");
        chart.said.replaceChildren(chart.hint);
        chart.said.style.minHeight = chart.lines.length > 3 ? "60px" : "40px"; // most of what is read has room, so that nothing moves
        if (chart.seen && chart.lines.length) plot(chart);
        tell(chart);
        if (chart.details.open) fillTable(chart);
    }

    function begin(name) {
        const chart = { name, falls: name.includes("loss"), lines: [], seen: false };
        chart.box = element("div", { class: "plot", "aria-hidden": "true" });
        chart.said = element("output", { class: "said", "aria-live": "polite" });
        chart.caption = element("figcaption", {});
        chart.table = element("div", { class: "box", tabindex: "0", role: "region", "aria-label": "table of " + name });
        chart.details = element("details", { ontoggle: () => chart.details.open && fillTable(chart) }, element("summary", {}, "As a table"), chart.table);
        chart.figure = element("figure", { class: "curve", tabindex: "0", role: "group", "data-name": name, onkeydown: (event) => key(chart, event),
            onmouseleave: () => focusOn(null) },
            element("h3", {}, name === "eval_loss" ? "eval_loss, held out" : name),
            chart.box, chart.said, chart.caption, chart.details);
        charts.push(chart);
        return chart.figure;
    }

    /* ---- what is chosen for all charts ---- */

    function choice(label, list, chosen, take) {
        const select = element("select", { onchange: () => take(select.value) },
            ...list.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
        return element("label", {}, label + " ", select);
    }

    function tick(label, name) {
        const box = element("input", { type: "checkbox", onchange: function () {
            state[name] = box.checked;
            report.change();
        } });
        return element("label", {}, box, " " + label);
    }

    function set(name, value) {
        state[name] = value;
        report.change();
    }

    function controls() {
        const by = Object.keys(axes.titles).filter(axes.known);
        const all = element("div", { class: "controls", role: "group", "aria-label": "what the charts show" },
            choice("x", by.map((name) => [name, axes.titles[name]]), state.by, (v) => set("by", v)), tick("log x", "logX"), tick("log y", "logY"),
            choice("smoothing", [0, 1, 2, 5, 10, 20].map((n) => [String(n), n ? n + " %" : "none"]), "0", (v) => set("smoothing", Number(v))));
        if (report.data.runs.length > 1)
            all.append(choice("colour by", [["run", "run"], ...report.columns().map((name) => [name, report.words[name] || name])], "run", (v) => set("colourBy", v)));
        if (axes.seeded) all.append(tick("means of seeds", "seeds"));
        all.append(element("button", { type: "button", onclick: () => charts.forEach(update) }, "Show all"));
        return all;
    }

    function describe() {
        const bins = axes.binned ? " A curve with more than " + report.data.bins + " points is drawn by bins of as many neighbours each, from the least to " +
            "the greatest in a bin, so that none of its extremes is lost; pointed at, it says the mean and both." : "";
        const smoothing = state.smoothing ? "Smoothed: each point is the mean over " + state.smoothing + " % of its run's points around it, as many on both sides, " +
            "fewer near the ends." : "Nothing is smoothed.";
        const seeds = state.seeds ? " Runs that differ in their seeds alone are one line, their mean, in its 95 % interval (Student's t), as far as all have been." : "";
        return smoothing + seeds + bins + " FLOPs are of training, forward and backward. A dashed line is a growth step. Drag to zoom, double-click to see all.";
    }

    const grid = element("div", { class: "plots wide" });
    const words = element("p", { class: "small", role: "status" });
    section.append(controls(), words, grid);
    axes.names.forEach((name) => grid.append(begin(name)));
    /* Charts are made when somebody can see them. */
    const watcher = new IntersectionObserver(function (entries) {
        for (const entry of entries) {
            const chart = charts.find((one) => one.figure === entry.target);
            if (!entry.isIntersecting || chart.seen) continue;
            chart.seen = true;
            if (chart.lines.length) plot(chart);
        }
    }, { rootMargin: "300px" });
    report.listen(function () {
        words.textContent = describe();
        charts.forEach(update);
    });
    charts.forEach((chart) => watcher.observe(chart.figure));
    addEventListener("resize", function () {
        for (const chart of charts) if (chart.plot && chart.box.clientWidth) chart.plot.setSize({ width: chart.box.clientWidth, height: 260 });
    });
    return { charts, focusOn };
})();
