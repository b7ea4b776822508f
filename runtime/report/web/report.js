/* report.js - the runs of this page, which of them are shown, and in which colours.
 *
 * In:  the JSON in #data.   Out: `report`, which the scripts behind this one share.
 * The one idea: whoever changes what is shown calls report.change(), and everybody who has said report.listen() draws again.
 * Texts of users become text nodes, never HTML.
 */
"use strict";

const report = (function () {
    const data = JSON.parse(document.getElementById("data").textContent);
    const listeners = [];
    const state = {
        by: "step", // what is on the axis of x
        logX: false,
        logY: false,
        smoothing: 0, // percent of a run's points
        seeds: false, // runs that differ in their seeds alone are one curve
        colourBy: "run",
        focus: null, // a run that is pointed at
        filters: new Map(), // by name: a function of a run
    };
    data.runs.forEach(function (run, number) {
        run.number = number;
        run.checked = true;
    });

    /* A node with attributes and children; a child that is no node is text. */
    function element(tag, attributes, ...children) {
        const node = document.createElement(tag);
        for (const [name, value] of Object.entries(attributes || {})) {
            if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
            else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
        }
        node.append(...children);
        return node;
    }

    /* ---- numbers as text ---- */

    /* 5 digits that count: 2.3457, 0.00012346, 81,920. */
    function number(v) {
        if (v == null || !Number.isFinite(v)) return "nan or inf";
        if (Number.isInteger(v)) return v.toLocaleString("en-US");
        const size = Math.abs(v);
        if (size < 1e-4 || size >= 1e7) return v.toExponential(4);
        return String(Number(v.toPrecision(5)));
    }

    /* 12.3k */
    function quantity(v) {
        if (v == null || !Number.isFinite(v)) return "\u2013";
        const units = ["", "k", "M", "G", "T", "P", "E"];
        let k = 0;
        while (Math.abs(v) >= 999.5 && k < 6) {
            v /= 1000;
            k++;
        }
        return String(Number(v.toPrecision(3))) + units[k];
    }

    /* ---- values of a run by name, for filters, colours and parallel coordinates ---- */

    /* A setting's text, or a number that is measured. */
    function value(run, name) {
        const at = data.settings.indexOf(name);
        return at >= 0 ? run.settings[at] : run[name];
    }

    /* "1e-3", "256", "4 seqs": the number in front; NaN where there is none. */
    function numeric(v) {
        if (typeof v === "number") return v;
        if (v == null || !/^[-+]?[0-9.]/.test(v)) return NaN;
        const text = String(v).replace(/_/g, "");
        const match = /^[-+]?[0-9.]+(e[-+]?[0-9]+)?( [a-z]+)?$/.exec(text);
        return match ? parseFloat(text) : NaN;
    }

    /* The values that runs have of a name, in order. */
    const known = new Map();
    function values(name) {
        if (!known.has(name)) known.set(name, sorted(name));
        return known.get(name);
    }
    function sorted(name) {
        const all = [...new Set(data.runs.map((run) => value(run, name)))];
        const numbers = all.every((v) => !Number.isNaN(numeric(v)));
        return all.sort(numbers ? (a, b) => numeric(a) - numeric(b) : (a, b) => String(a).localeCompare(String(b)));
    }

    /* ---- colours ---- */

    const palette = [];
    function readPalette() {
        const dark = matchMedia("(prefers-color-scheme: dark)").matches;
        palette.length = 0;
        for (let i = 0; i < 8; i++) {
            const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
            const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
            path.setAttribute("class", "s" + i);
            mark.append(path);
            document.body.append(mark);
            palette.push(getComputedStyle(path).stroke);
            mark.remove();
        }
        palette.light = dark ? 66 : 40;
    }

    function colour(run) {
        if (state.colourBy === "run") {
            if (data.runs.length <= 8) return palette[run.number];
            return "hsl(" + ((run.number * 137.508) % 360).toFixed(1) + " 70% " + palette.light + "%)";
        }
        const all = values(state.colourBy);
        const at = all.indexOf(value(run, state.colourBy));
        if (all.length <= 8) return palette[at];
        return "hsl(" + (250 - (220 * at) / (all.length - 1)).toFixed(1) + " 75% " + palette.light + "%)";
    }

    /* The marks of runs, wherever they stand in the page: of class k and the run's number. */
    const marks = [...document.querySelectorAll("svg.k path")].map((path) => [path, data.runs[/ k([0-9]+)/.exec(path.getAttribute("class"))[1]]]);
    function colourMarks() {
        for (const [path, run] of marks) path.style.stroke = colour(run);
    }

    /* ---- what is shown ---- */

    function passes(run) {
        for (const test of state.filters.values()) if (!test(run)) return false;
        return true;
    }

    function change() {
        colourMarks();
        for (const listener of listeners) listener();
    }

    readPalette();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
        readPalette();
        change();
    });
    return {
        data,
        state,
        element,
        number,
        quantity,
        value,
        numeric,
        values,
        colour,
        passes,
        change,
        listen: (listener) => listeners.push(listener),
        shown: () => data.runs.filter((run) => run.checked && passes(run)),
        /* What a sweep has varied, and what came of it. */
        columns: function () {
            const all = data.settings.slice(0, 12);
            if (values("weights").length > 1) all.push("weights");
            const evaluated = data.runs.every((run) => run.eval_loss != null);
            all.push(evaluated ? "eval_loss" : "loss");
            return all;
        },
        words: { weights: "weights", eval_loss: "held out", loss: "loss" },
    };
})();
