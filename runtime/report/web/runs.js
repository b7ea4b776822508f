/* runs.js - the table of runs: sorted by any column, filtered by settings and names, with a box for each run.
 *
 * In:  report, the table as the page has it.   Out: which runs are shown.
 * The one idea: the rows are the page's own; here they are put into order, hidden and ticked. The last script: it draws first.
 */
"use strict";

(function () {
    const { data, state, element } = report;
    const section = document.getElementById("runs");
    const body = section.querySelector("tbody");
    const heads = [...section.querySelectorAll("thead th")];
    const rows = [...body.rows];
    const words = element("p", { role: "status" });
    const VALUES_MOST = 20; // of a setting that can be chosen from a list

    /* ---- order ---- */

    /* What a row has in a column: a number where the page shows one. */
    const measured = ["weights", "step", "tokens", "flops", "seconds", "loss", "eval_loss", "bits_per_byte", "best", "tok_s"];
    function valueOf(row, column) {
        const run = data.runs[row.dataset.run];
        const at = column - (heads.length - measured.length);
        return at >= 0 ? run[measured[at]] : row.cells[column].textContent.trim();
    }

    function sort(column, head) {
        const falls = head.getAttribute("aria-sort") === "ascending";
        const numbers = rows.every((row) => valueOf(row, column) == null || Number.isFinite(report.numeric(valueOf(row, column))));
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", falls ? "descending" : "ascending");
        rows.sort(function (a, b) {
            const x = valueOf(a, column), y = valueOf(b, column);
            if (x == null || y == null) return (x == null) - (y == null); // what is no number is last both ways
            const order = numbers ? report.numeric(x) - report.numeric(y) : String(x).localeCompare(String(y), undefined, { numeric: true });
            return falls ? -order : order;
        });
        body.append(...rows);
    }

    heads.forEach(function (head, column) {
        const button = element("button", { type: "button", class: "sort", onclick: () => sort(column, head) }, head.textContent);
        head.replaceChildren(button);
    });

    /* ---- which are shown ---- */

    const boxes = rows.map(function (row) {
        const run = data.runs[row.dataset.run];
        const box = element("input", { type: "checkbox", checked: true, "aria-label": "show " + run.name, onchange: function () {
            run.checked = box.checked;
            report.change();
        } });
        row.cells[0].prepend(box, " ");
        row.addEventListener("mouseenter", () => curves.focusOn(run));
        row.addEventListener("mouseleave", () => curves.focusOn(null));
        row.addEventListener("focusin", () => curves.focusOn(run));
        return box;
    });

    function tickAll(on) {
        data.runs.forEach(function (run) {
            if (report.passes(run)) run.checked = on;
        });
        report.change();
    }

    function chooser(name) {
        const values = report.values(name);
        if (values.length > VALUES_MOST) return "";
        const select = element("select", { onchange: function () {
            if (select.value === "") state.filters.delete("value " + name);
            else state.filters.set("value " + name, (run) => report.value(run, name) === values[Number(select.value)]);
            report.change();
        } }, element("option", { value: "" }, "all"), ...values.map((v, i) => element("option", { value: String(i) }, v === "" ? "not set" : v)));
        return element("label", {}, name + " ", select);
    }

    if (data.runs.length > 1) {
        const text = element("input", { type: "search", placeholder: "part of a name", oninput: function () {
            const part = text.value.toLowerCase();
            if (part) state.filters.set("name", (run) => run.name.toLowerCase().includes(part));
            else state.filters.delete("name");
            report.change();
        } });
        section.prepend(element("div", { class: "controls", role: "group", "aria-label": "which runs are shown" }, element("label", {}, "name ", text),
            ...data.settings.slice(0, 12).map(chooser), element("button", { type: "button", onclick: () => tickAll(true) }, "Tick all"),
            element("button", { type: "button", onclick: () => tickAll(false) }, "Tick none")), words);
    }

    report.listen(function () {
        rows.forEach((row) => (row.hidden = !report.passes(data.runs[row.dataset.run])));
        boxes.forEach((box) => {
            const run = data.runs[box.closest("tr").dataset.run];
            box.checked = run.checked;
        });
        words.textContent = report.shown().length + " of " + data.runs.length + " runs are shown.";
    });
    report.change();
    document.documentElement.dataset.ready = "yes";
})();
