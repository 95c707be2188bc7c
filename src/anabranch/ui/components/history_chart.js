// Series over time. The server sends the points that are new; the chart keeps what it has, and its zoom.
import { echarts } from "nicegui-echart";

const MOST = 4000;
const COLOURS = ["#0d9488", "#ea580c", "#2563eb", "#c026d3", "#65a30d", "#dc2626", "#7c3aed", "#0891b2", "#ca8a04", "#db2777", "#4b5563", "#059669"];

// Sums of what a computer rounds have digits that nobody meant.
const written = (value) => (value == null ? "" : Number.isInteger(value) ? value : Number(value.toPrecision(12)));
const brief = (name) => (name.length > 40 ? name.slice(0, 39) + "…" : name).replace(/\s+/g, " ");

export default {
  props: { label: String, file: String },
  template: `<div class="ab-chart" role="img" :aria-label="label"></div>`,
  mounted() {
    this.names = [];
    this.points = new Map();
    this.chart = echarts.init(this.$el, null, { renderer: "canvas" });
    this.sizes = new ResizeObserver(() => this.$el.offsetWidth && this.chart.resize());
    this.sizes.observe(this.$el);
    this.themes = new MutationObserver(() => {
      const dark = document.body.classList.contains("body--dark");
      if (dark !== this.dark) this.draw(true);
      this.dark = dark;
    });
    this.themes.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.draw(true);
  },
  beforeUnmount() {
    this.sizes.disconnect();
    this.themes.disconnect();
    this.chart.dispose();
  },
  methods: {
    reset(names, points) {
      this.names = names;
      this.points = new Map(names.map((name) => [name, []]));
      this.append(points, true);
    },
    append(points, whole = false) {
      let grown = whole;
      for (const [name, more] of Object.entries(points)) {
        if (!this.points.has(name)) {
          this.points.set(name, []);
          this.names.push(name);
          grown = true;
        }
        const held = this.points.get(name);
        for (const point of more) held.push(point);
        if (held.length > MOST) held.splice(0, held.length - MOST);
      }
      this.draw(grown);
    },
    count() {
      return [...this.points.values()].reduce((sum, held) => sum + held.filter((point) => point[1] !== null).length, 0);
    },
    csv() {
      const times = [...new Set([...this.points.values()].flatMap((held) => held.map((point) => point[0])))].sort((a, b) => a - b);
      const quoted = (text) => (/[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
      const columns = this.names.map((name) => new Map(this.points.get(name)));
      const lines = [["at", ...this.names].map(quoted).join(",")];
      for (const at of times) lines.push([new Date(at).toISOString(), ...columns.map((held) => written(held.get(at)))].join(","));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
      link.download = (this.file || "series") + ".csv";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    },
    png() {
      const link = document.createElement("a");
      link.href = this.chart.getDataURL({ pixelRatio: 2, backgroundColor: this.colour("--card"), excludeComponents: ["toolbox", "dataZoom"] });
      link.download = (this.file || "series") + ".png";
      link.click();
    },
    colour(name) {
      return getComputedStyle(document.body).getPropertyValue(name).trim();
    },
    draw(whole) {
      if (!this.chart) return;
      this.$el.dataset.points = this.count();
      const series = this.names.map((name, index) => ({
        id: name,
        name,
        type: "line",
        data: this.points.get(name),
        showSymbol: (this.points.get(name)?.length ?? 0) < 2,
        symbolSize: 6,
        connectNulls: false,
        sampling: this.points.get(name)?.some((point) => point[1] === null) ? undefined : "lttb", // which would join what is broken
        lineStyle: { width: 2 },
        emphasis: { focus: "series" },
        color: COLOURS[index % COLOURS.length],
      }));
      if (!whole) {
        this.chart.setOption({ series });
        return;
      }
      const ink = this.colour("--ink"), faint = this.colour("--faint"), line = this.colour("--line");
      const zoom = this.chart.getOption()?.dataZoom?.[0];
      this.chart.setOption(
        {
          animation: false,
          useUTC: true,
          textStyle: { fontFamily: getComputedStyle(this.$el).fontFamily },
          grid: { left: 12, right: 16, top: this.names.length ? 40 : 16, bottom: 52, containLabel: true },
          legend: { type: "scroll", top: 4, left: 8, right: 8, icon: "roundRect", itemWidth: 12, itemHeight: 4, textStyle: { color: ink, lineHeight: 18 }, formatter: brief, pageTextStyle: { color: faint } },
          tooltip: { trigger: "axis", confine: true, backgroundColor: this.colour("--card"), borderColor: line, textStyle: { color: ink, fontSize: 12 }, valueFormatter: (value) => (value == null ? "–" : Number(value).toLocaleString("en", { maximumFractionDigits: 4 })) },
          xAxis: { type: "time", axisLine: { lineStyle: { color: line } }, axisTick: { show: false }, axisLabel: { color: faint, hideOverlap: true }, splitLine: { show: false }, splitNumber: this.$el.offsetWidth < 500 ? 3 : 6 },
          yAxis: { type: "value", scale: true, axisLabel: { color: faint }, splitLine: { lineStyle: { color: line, opacity: 0.6 } } },
          dataZoom: [
            { type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, preventDefaultMouseMove: false, start: zoom?.start ?? 0, end: zoom?.end ?? 100 },
            { type: "slider", height: 18, bottom: 10, borderColor: "transparent", backgroundColor: this.colour("--wash"), fillerColor: this.colour("--accent-wash"), showDetail: false, brushSelect: false, handleStyle: { color: this.colour("--card"), borderColor: faint }, moveHandleSize: 0, dataBackground: { lineStyle: { color: line }, areaStyle: { color: line } }, selectedDataBackground: { lineStyle: { color: faint }, areaStyle: { color: line } }, start: zoom?.start ?? 0, end: zoom?.end ?? 100 },
          ],
          series,
        },
        { notMerge: true },
      );
    },
  },
};
