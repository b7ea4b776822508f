/* axes.js - curves of runs over steps, tokens, FLOPs or time, smoothed or not, alone or as means of seeds.
 *
 * In:  report.data.   Out: `lines(name)`: what is drawn of a number's curves.
 * The one idea: a line is places x with what is known there: a mean, and the least and greatest of a bin of points or the
 * interval of a mean. Means over a window are those of the run's own points, whatever was put together for the page.
 */
"use strict";

const axes = (function () {
    const { data, state } = report;
    const titles = { step: "step", tokens: "tokens", flops: "FLOPs", seconds: "seconds" };

    /* Where the points or bins of a curve end. NULL: the run has not told. */
    function places(run, curve, by) {
        const axis = run.axes[curve.axis];
        if (Array.isArray(axis[by])) return axis[by];
        return axis[by] == null ? null : axis.step.map((step) => step * axis[by]);
    }

    /* Means over so many percent of a run's points around each, as many on both sides. */
    function smooth(values, points, each) {
        const reach = Math.floor(((points * state.smoothing) / 100 / each - 1) / 2);
        if (reach < 1) return values;
        const sum = [0];
        const count = [0];
        values.forEach(function (v, i) {
            sum.push(sum[i] + (v == null ? 0 : v));
            count.push(count[i] + (v == null ? 0 : 1));
        });
        return values.map(function (v, i) {
            const r = Math.min(reach, i, values.length - 1 - i);
            const n = count[i + r + 1] - count[i - r];
            return v == null || !n ? null : (sum[i + r + 1] - sum[i - r]) / n;
        });
    }

    function lineOf(run, curve) {
        const axis = run.axes[curve.axis];
        const x = places(run, curve, state.by);
        if (!x) return null;
        const mean = smooth(curve.mean, axis.points, axis.each);
        const binned = axis.each > 1 && mean === curve.mean;
        return { run, name: run.name, x, mean, least: binned ? curve.least : null, most: binned ? curve.most : null, runs: 1,
            each: axis.each, points: axis.points, step: axis.step, odd: curve.odd || 0, oddFrom: curve.oddFrom };
    }

    /* Straight between two places; null outside. */
    function valueAt(line, x) {
        const i = firstAt(line.x, x);
        if (i === line.x.length) return null;
        if (line.x[i] === x) return line.mean[i];
        if (!i || line.mean[i] == null || line.mean[i - 1] == null) return null;
        return line.mean[i - 1] + ((line.mean[i] - line.mean[i - 1]) * (x - line.x[i - 1])) / (line.x[i] - line.x[i - 1]);
    }

    /* The first place that is not before x. */
    function firstAt(list, x) {
        let lo = 0;
        let hi = list.length;
        while (lo < hi) {
            const middle = (lo + hi) >> 1;
            if (list[middle] < x) lo = middle + 1;
            else hi = middle;
        }
        return lo;
    }

    /* The place nearest to x. */
    function nearest(list, x) {
        const i = firstAt(list, x);
        if (i === list.length) return i - 1;
        return i && x - list[i - 1] < list[i] - x ? i - 1 : i;
    }

    /* Of runs that differ in their seeds alone: their mean with its 95 % interval, by Student's t, where all of them have been. */
    function meanOf(group) {
        if (group.length === 1) return group[0];
        const line = { run: group[0].run, name: group[0].name + " and " + (group.length - 1) + (group.length > 2 ? " more seeds" : " more seed"),
            runs: group.length, x: [], mean: [], least: [], most: [], each: 1, odd: 0 };
        const t = data.student[Math.min(group.length - 1, data.student.length) - 1];
        for (const x of group[0].x) {
            const v = group.map((one) => valueAt(one, x));
            if (v.includes(null)) continue;
            const mean = v.reduce((a, b) => a + b, 0) / v.length;
            const variance = v.reduce((a, b) => a + (b - mean) * (b - mean), 0) / (v.length - 1);
            const half = t * Math.sqrt(variance / v.length);
            line.x.push(x);
            line.mean.push(mean);
            line.least.push(mean - half);
            line.most.push(mean + half);
        }
        return line.x.length ? line : null;
    }

    /* What is drawn of the curves with a name. */
    function lines(name) {
        const all = [];
        for (const run of report.shown()) {
            const curve = run.curves.find((c) => c.name === name);
            const line = curve && lineOf(run, curve);
            if (line) all.push(line);
        }
        if (!state.seeds) return all;
        const groups = new Map();
        for (const line of all) groups.set(line.run.group, [...(groups.get(line.run.group) || []), line]);
        return [...groups.values()].map(meanOf).filter((line) => line);
    }

    return {
        titles,
        lines,
        valueAt,
        nearest,
        names: [...new Set(data.runs.flatMap((run) => run.curves.map((curve) => curve.name)))],
        known: (by) => data.runs.every((run) => run.axes.every((axis) => axis[by] != null)),
        seeded: new Set(data.runs.map((run) => run.group)).size < data.runs.length,
        binned: data.runs.some((run) => run.axes.some((axis) => axis.each > 1)),
    };
})();
