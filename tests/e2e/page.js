/* page.js - put behind the scripts of a page of `vwn report`: uses it as a reader would, and tells the page around it what was seen.
 *
 * In:  a page in a frame; its place's hash says who it is and what is asked: "NAME" (as wide as the frame), "NAME:use".
 * Out: lines of words by postMessage, which report_seen.sh compares with the events of the runs.
 */
"use strict";

addEventListener("load", async function () {
    const [name, use] = location.hash.slice(1).split(":");
    const say = (...words) => parent.postMessage([name, ...words].join(" "), "*");
    const pause = () => new Promise((done) => setTimeout(done, 60)); // frames below another one are seldom drawn

    /* ---- how it looks ---- */

    function light(c) {
        const part = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : Math.pow((v / 255 + 0.055) / 1.055, 2.4));
        return 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
    }
    const rgb = (s) => s.match(/[0-9.]+/g).slice(0, 3).map(Number);
    function contrast(a, b) {
        const [x, y] = [light(a), light(b)];
        return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
    }
    /* The colour behind a node: of the nearest that has one. */
    function behind(node) {
        for (; node; node = node.parentElement) {
            const back = getComputedStyle(node).backgroundColor;
            if (!/, 0\)$/.test(back) && back !== "transparent") return rgb(back);
        }
        return [255, 255, 255];
    }

    function look() {
        let least = 99, texts = 0, smallest = 99;
        for (const node of document.querySelectorAll("h1,h2,h3,td,th,dt,dd,p,pre,label,summary,figcaption,button,select,.said,text")) {
            const style = getComputedStyle(node), box = node.getBoundingClientRect();
            if (!box.width) continue;
            texts++;
            const cell = /^([pn][0-9]+)t/.exec(node.getAttribute("class")); // a number on a cell of a matrix
            const on = cell ? rgb(getComputedStyle(node.ownerSVGElement.querySelector("." + cell[1])).fill) : behind(node);
            least = Math.min(least, contrast(rgb(node.tagName.toLowerCase() === "text" ? style.fill : style.color), on));
            const svg = node.ownerSVGElement;
            const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
            smallest = Math.min(smallest, parseFloat(style.fontSize) * scale);
        }
        say("width", document.documentElement.scrollWidth, innerWidth, "back", Math.round(behind(document.body)[0]), "contrast", least.toFixed(2), "texts", texts,
            "smallest", smallest.toFixed(1));
        // where everything lies: two pictures of one page have the same
        let places = 7;
        for (const node of document.querySelectorAll("section,figure,canvas,table,tr,h2,h3,p,svg,details")) {
            const box = node.getBoundingClientRect();
            for (const v of [box.left, box.top, box.width, box.height]) places = (places * 31 + Math.round(v)) % 1000003;
        }
        say("places", places, "of", document.querySelectorAll("canvas").length, "canvases");
    }

    /* ---- using it ---- */

    const chart = (of) => curves.charts.find((one) => one.name === of);
    const near = (of) => (chart(of).said.querySelector(".near") || { textContent: "nothing" }).textContent;
    const status = () => document.querySelector("#runs [role=status]").textContent;

    async function point(of, run, step) {
        const { plot, lines } = chart(of);
        const line = lines.find((one) => one.run.number === run), i = axes.nearest(line.x, step);
        const box = plot.over.getBoundingClientRect();
        plot.over.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, clientX: box.left + plot.valToPos(line.x[i], "x"),
            clientY: box.top + plot.valToPos(line.mean[i], "y"), movementX: 1 }));
        await pause();
        return near(of);
    }

    function choose(label, value) {
        const select = [...document.querySelectorAll("label")].find((one) => one.textContent.startsWith(label + " ")).querySelector("select");
        select.value = [...select.options].find((one) => one.textContent === value).value;
        select.dispatchEvent(new Event("change"));
    }

    function tick(label) {
        [...document.querySelectorAll("label")].find((one) => one.textContent.trim() === label).querySelector("input").click();
    }

    async function press(of, key, shiftKey) {
        const { figure } = chart(of);
        figure.focus();
        figure.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey: !!shiftKey, bubbles: true }));
        await pause();
        return near(of);
    }

    /* How many pixels around a point of a run have its colour. */
    function painted(of, run, step) {
        const { plot, lines } = chart(of), line = lines.find((one) => one.run.number === run), i = axes.nearest(line.x, step);
        const x = Math.round(plot.valToPos(line.x[i], "x", true)), y = Math.round(plot.valToPos(line.mean[i], "y", true));
        const pixels = plot.ctx.getImageData(x - 3, y - 3, 7, 7).data, want = rgb(getComputedStyle(document.querySelector("path.k" + run)).stroke);
        let n = 0;
        for (let k = 0; k < pixels.length; k += 4) n += want.every((v, c) => Math.abs(v - pixels[k + c]) < 12) && pixels[k + 3] > 200;
        return n;
    }

    const picture = (of) => chart(of).plot.ctx.canvas.toDataURL();

    async function useIt() {
        for (const step of [3, 20, 37]) for (const run of [0, 1, 2]) say("hover", run, step, "=", await point("loss", run, step));
        say("held", await point("eval_loss", 1, 40));
        for (const run of [0, 1, 2]) say("painted", run, painted("loss", run, 20));
        say("key", await press("loss", "End"));
        say("key", await press("loss", "ArrowLeft"));
        say("key", await press("loss", "ArrowLeft", true));
        await press("loss", "+");
        const { min, max } = chart("loss").plot.scales.x;
        say("zoomed", (max - min).toFixed(2), "of", (chart("loss").to - chart("loss").from).toFixed(2));
        await press("loss", "0");
        say("whole", (chart("loss").plot.scales.x.max - chart("loss").plot.scales.x.min).toFixed(2));

        report.change(); // nothing is pointed at
        await pause();
        const first = picture("loss");
        tick("log y");
        await pause();
        say("log", picture("loss") === first ? "same" : "other", "y", chart("loss").plot.scales.y.distr);
        tick("log y");
        await pause();
        say("again", picture("loss") === first ? "same" : "other");
        choose("x", "tokens");
        await pause();
        say("by", chart("loss").lines[0].x[19], chart("loss").lines[0].mean[19]);
        choose("x", "step");
        choose("smoothing", "20 %");
        await pause();
        say("smooth", await point("loss", 0, 20));
        choose("smoothing", "none");
        tick("means of seeds");
        await pause();
        say("seeds", chart("loss").lines.length, await point("loss", 0, 20));
        tick("means of seeds");

        await pause();
        // a curve whose means are equal but for how they are rounded is flat
        const rate = chart("lr").plot;
        say("flat", (rate.scales.y.max / rate.scales.y.min).toFixed(2));

        chart("loss").details.open = true;
        chart("loss").details.dispatchEvent(new Event("toggle"));
        await pause();
        const rows = [...chart("loss").table.querySelectorAll("tbody tr")];
        say("table", rows.length, rows.map((row) => row.cells[2].textContent).join(" "));

        choose("train.seed", "2");
        await pause();
        say("filter", chart("loss").lines.length, [...document.querySelectorAll("#runs tbody tr")].filter((row) => !row.hidden).length, status());
        choose("train.seed", "all");
        await pause();
        const head = [...document.querySelectorAll("#runs th button")].find((one) => one.textContent === "loss");
        const order = () => [...document.querySelectorAll("#runs tbody tr")].map((row) => row.dataset.run).join("");
        head.click();
        say("sorted", order(), head.parentElement.getAttribute("aria-sort"));
        head.click();
        say("sorted", order(), head.parentElement.getAttribute("aria-sort"));
        document.querySelector("#runs tr[data-run='1'] input").click();
        await pause();
        say("ticked", chart("loss").lines.length, status());
        document.querySelector("#runs tr[data-run='1'] input").click();

        // the last axis: what came of it; its lower half
        const groups = [...document.querySelectorAll(".parallel .axis")], axis = groups[groups.length - 1], handle = axis.querySelector(".handle");
        const box = handle.getBoundingClientRect();
        const event = (type, part) => handle.dispatchEvent(new PointerEvent(type, { bubbles: true, clientX: box.left + 1, clientY: box.top + box.height * part }));
        event("pointerdown", 0.5);
        event("pointerup", 1);
        await pause();
        say("brushed", report.shown().map((run) => run.number).join(""), status());
        axis.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
        await pause();
        say("all", report.shown().length);
        // what can be reached by keys has a name that is read aloud
        const nameless = [...document.querySelectorAll("button,select,input,[tabindex]")].filter((node) => !(node.getAttribute("aria-label") || node.textContent.trim() ||
            (node.labels && node.labels.length)));
        say("nameless", nameless.length, "images", document.images.length, "title", document.title);
    }

    try {
        await pause();
        say("ready", document.documentElement.dataset.ready, chart("loss").lines.length, chart("loss").plot ? "drawn" : "not drawn");
        if (use) await useIt();
        document.querySelectorAll("details").forEach((one) => (one.open = true));
        await pause();
        look();
    } catch (error) {
        say("ERROR", String(error), (error.stack || "").replace(/\s+/g, " "));
    }
    say("done");
});
