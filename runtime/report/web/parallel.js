/* parallel.js - a sweep in parallel coordinates: a line for each run, an axis for each setting that differs and for what came of it.
 *
 * In:  report.   Out: a picture above the curves; ranges that are chosen on its axes are filters of the runs.
 * The one idea: an axis knows where a run is on it, from 0 to 1; numbers that span a factor of fifty lie by their logarithms.
 */
"use strict";

(function () {
    const { data, state, element } = report;
    const names = report.columns();
    if (data.runs.length < 3 || names.length < 2) return;
    const HIGH = 260, TOP = 34, BOTTOM = 26, SIDE = 60;
    const room = document.getElementById("curves").clientWidth;
    const between = Math.min(Math.max((room - 2 * SIDE) / (names.length - 1), 120), 320); // axes; the picture scrolls where they are many
    const wide = 2 * SIDE + between * (names.length - 1);

    function svg(tag, attributes, ...children) {
        const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
        for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
        node.append(...children);
        return node;
    }

    /* Where a run lies, and what stands at both ends. */
    function axisOf(name) {
        const values = report.values(name);
        const numbers = values.map(report.numeric).filter((v) => Number.isFinite(v));
        const axis = { name, title: report.words[name] || name, range: null };
        if (numbers.length === values.filter((v) => v != null).length && numbers.length) {
            const least = numbers[0], most = numbers[numbers.length - 1];
            axis.log = least > 0 && most / least >= 50;
            const scale = (v) => (axis.log ? Math.log(v) : v);
            axis.at = function (run) {
                const v = report.numeric(report.value(run, name));
                return !Number.isFinite(v) ? null : most > least ? (scale(v) - scale(least)) / (scale(most) - scale(least)) : 0.5;
            };
            axis.text = (part) => report.number(axis.log ? Math.exp(Math.log(least) + part * (Math.log(most) - Math.log(least))) : least + part * (most - least));
        } else {
            axis.at = (run) => (values.length > 1 ? values.indexOf(report.value(run, name)) / (values.length - 1) : 0.5);
            axis.text = (part) => String(values[Math.round(part * (values.length - 1))] ?? "\u2013");
        }
        return axis;
    }

    const all = names.map(axisOf);
    const x = (i) => SIDE + i * between;
    const y = (part) => HIGH - BOTTOM - part * (HIGH - TOP - BOTTOM);
    const tail = (text, most) => (text.length > most ? "\u2026" + text.slice(1 - most) : text);
    /* A value, so that it is seen how it differs from that at the other end: by what it begins with, or by what it ends with. */
    function short(text, other, most) {
        const head = text.slice(0, most - 1);
        return text.length <= most ? text : other.startsWith(head) ? tail(text, most) : head + "\u2026";
    }

    function choose(axis, range) {
        axis.range = range;
        if (range) state.filters.set("range " + axis.name, (run) => axis.at(run) != null && axis.at(run) >= range[0] - 1e-9 && axis.at(run) <= range[1] + 1e-9);
        else state.filters.delete("range " + axis.name);
        report.change();
    }

    /* Both ends by keys: up and down the upper one, with Shift the lower one. */
    function key(axis, event) {
        const step = { ArrowUp: 0.05, ArrowDown: -0.05 }[event.key];
        if (event.key === "Escape") choose(axis, null);
        else if (step) {
            const [low, high] = axis.range || [0, 1];
            const within = (v) => Math.round(Math.min(Math.max(v, 0), 1) * 100) / 100;
            choose(axis, event.shiftKey ? [Math.min(within(low + step), high), high] : [low, Math.max(within(high + step), low)]);
        } else return;
        event.preventDefault();
    }

    /* A range is drawn with the pointer; a click alone takes it away. */
    function brush(axis, node) {
        let from = null;
        const part = (event) => {
            const box = node.getBoundingClientRect();
            return Math.min(Math.max(1 - (event.clientY - box.top) / box.height, 0), 1);
        };
        node.addEventListener("pointerdown", function (event) {
            from = part(event);
            if (event.isTrusted) node.setPointerCapture(event.pointerId);
        });
        node.addEventListener("pointerup", function (event) {
            if (from == null) return;
            const to = part(event);
            choose(axis, Math.abs(to - from) < 0.02 ? null : [Math.min(from, to), Math.max(from, to)]);
            from = null;
        });
    }

    const lines = svg("g", { class: "lines", fill: "none" });
    const picture = svg("svg", { class: "parallel", viewBox: "0 0 " + wide + " " + HIGH, width: wide, height: HIGH, role: "group",
        "aria-label": "settings and results of " + data.runs.length + " runs, a line for each; the table of runs has the same numbers" }, lines);
    const paths = data.runs.map(function (run) {
        const points = all.map((axis, i) => [x(i), axis.at(run)]);
        let pen = false;
        const d = points.map(function ([px, part]) {
            const text = part == null ? "" : (pen ? "L" : "M") + px + " " + y(part).toFixed(1);
            pen = part != null;
            return text;
        });
        const path = svg("path", { d: d.join(""), "data-run": run.number });
        path.append(svg("title", {}, run.name));
        path.addEventListener("mouseenter", () => curves.focusOn(run));
        path.addEventListener("mouseleave", () => curves.focusOn(null));
        lines.append(path);
        return path;
    });
    all.forEach(function (axis, i) {
        axis.mark = svg("rect", { class: "range", x: x(i) - 7, width: 14, visibility: "hidden" });
        const handle = svg("rect", { class: "handle", x: x(i) - 14, y: TOP, width: 28, height: HIGH - TOP - BOTTOM });
        axis.group = svg("g", { class: "axis", tabindex: "0", role: "group" }, svg("path", { class: "a", d: "M" + x(i) + " " + TOP + "V" + (HIGH - BOTTOM) }),
            axis.mark, svg("text", { x: x(i), y: 12, "text-anchor": "middle" }, tail(axis.title, 17), svg("title", {}, axis.title)),
            svg("text", { x: x(i), y: TOP - 6, "text-anchor": "middle", class: "end" }, short(axis.text(1), axis.text(0), 15)),
            svg("text", { x: x(i), y: HIGH - 8, "text-anchor": "middle", class: "end" }, short(axis.text(0), axis.text(1), 15)), handle);
        axis.group.addEventListener("keydown", (event) => key(axis, event));
        brush(axis, handle);
        picture.append(axis.group);
    });

    report.listen(function () {
        const shown = new Set(report.shown());
        paths.forEach(function (path, i) {
            path.style.stroke = report.colour(data.runs[i]);
            path.style.display = shown.has(data.runs[i]) ? "" : "none";
        });
        all.forEach(function (axis) {
            const [low, high] = axis.range || [0, 1];
            axis.mark.setAttribute("visibility", axis.range ? "visible" : "hidden");
            axis.mark.setAttribute("y", y(high));
            axis.mark.setAttribute("height", Math.max(y(low) - y(high), 1));
            axis.group.setAttribute("aria-label", axis.title + (axis.log ? ", by its logarithm" : "") + ", from " + axis.text(low) + " to " + axis.text(high) +
                ". Up and down arrows move the upper end, with Shift the lower one, Escape takes the range away.");
        });
    });
    const box = element("div", { class: "box", tabindex: "0", role: "region", "aria-label": "parallel coordinates" }, picture);
    const section = element("section", { id: "sweep" }, element("h2", {}, "Settings and what came of them"), box,
        element("p", { class: "small" }, "Drag along an axis to show only runs in that range; click it to take the range away. Axes of numbers that span " +
            "a factor of fifty are logarithmic."));
    document.getElementById("curves").before(section);
})();
