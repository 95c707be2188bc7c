// The operators of a query as boxes. Where they stand is the server's word; this draws them, with what they do just now.
const count = (value) => (value >= 1e6 ? (value / 1e6).toFixed(1) + "M" : value >= 1e5 ? Math.round(value / 1e3) + "k" : value.toLocaleString("en"));

export default {
  props: { drawing: Object, label: String, lit: Number, kind: String, empty: String, chosen: Number },
  data: () => ({ loads: {}, flowing: {}, scale: 1 }),
  template: `
    <div class="ab-plan">
      <div v-if="drawing?.boxes?.length" class="ab-plan-scroll" tabindex="0" role="region" :aria-label="label">
        <svg :viewBox="'0 0 ' + drawing.width + ' ' + drawing.height" :width="drawing.width * scale" :height="drawing.height * scale" role="group">
          <defs>
            <marker :id="'tip' + $.uid" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="10" markerHeight="10" orient="auto"><path class="tip" d="M0 0.8 L8 4 L0 7.2 z"/></marker>
          </defs>
          <path v-for="edge in drawing.edges" :key="edge.from + '-' + edge.to" :d="edge.path" class="edge"
                :class="{flowing: flowing[edge.from], lit: edge.from === lit}" :marker-end="'url(#tip' + $.uid + ')'"/>
          <g v-for="box in drawing.boxes" :key="box.id" class="box" :class="[box.kind, {lit: box.id === lit, chosen: box.id === chosen}, box.id === lit ? kind : '']"
             :transform="'translate(' + box.x + ' ' + box.y + ')'" tabindex="0" role="button" :aria-label="spoken(box)"
             @click="$emit('choose', box.id)" @keydown.enter="$emit('choose', box.id)">
            <title>{{ box.title }}{{ box.full ? ': ' + box.full : '' }}</title>
            <rect :width="box.w" :height="box.h" rx="7"/>
            <text x="12" y="18" class="name">{{ box.title }}</text>
            <text :x="box.w - 12" y="18" class="part" text-anchor="end">{{ box.part }}</text>
            <text v-for="(line, index) in box.lines" :key="index" x="12" :y="35 + index * 16" class="line">{{ line }}</text>
            <g v-if="box.counted" class="load">
              <text x="12" :y="box.h - 26" class="figure">{{ flow(box) }}</text>
              <text x="12" :y="box.h - 10" class="figure">{{ held(box) }}</text>
            </g>
          </g>
        </svg>
      </div>
      <div v-else class="ab-empty"><p>{{ empty }}</p></div>
      <div v-if="drawing?.boxes?.length" class="ab-zoom" role="group" aria-label="size of the drawing">
        <button aria-label="smaller" title="Smaller" @click="zoom(1 / 1.2)">−</button>
        <button aria-label="fit" title="Fit" @click="fit">fit</button>
        <button aria-label="larger" title="Larger" @click="zoom(1.2)">+</button>
      </div>
    </div>`,
  mounted() {
    this.sizes = new ResizeObserver(() => this.untouched !== false && this.fit());
    this.sizes.observe(this.$el);
    this.fit();
  },
  beforeUnmount() {
    this.sizes.disconnect();
    clearTimeout(this.timer);
  },
  watch: {
    drawing() {
      this.loads = {};
      this.untouched = true;
      this.$nextTick(this.fit);
    },
    lit() {
      this.$nextTick(() => {
        const area = this.$el.querySelector(".ab-plan-scroll");
        const box = this.$el.querySelector(".box.lit")?.getBoundingClientRect();
        if (!area || !box) return;
        const view = area.getBoundingClientRect();
        if (box.top < view.top || box.bottom > view.bottom) area.scrollTop += box.top + box.height / 2 - view.top - view.height / 2;
        if (box.left < view.left || box.right > view.right) area.scrollLeft += box.left + box.width / 2 - view.left - view.width / 2;
      });
    },
  },
  methods: {
    load(loads) {
      const flowing = {};
      for (const [id, now] of Object.entries(loads)) if (this.loads[id] && now[1] > this.loads[id][1]) flowing[id] = true;
      this.loads = { ...this.loads, ...loads };
      this.flowing = flowing;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => (this.flowing = {}), 1500);
    },
    flow(box) {
      const now = this.loads[box.id];
      return now ? `in ${count(now[0])} · out ${count(now[1])}` : "in – · out –";
    },
    held(box) {
      const now = this.loads[box.id];
      return now ? `holds ${count(now[2])} · ${now[3] < 0.995 ? now[3].toFixed(2) : now[3].toFixed(1)} ms` : "holds – · – ms";
    },
    spoken(box) {
      return `${box.title}, ${box.part}${box.full ? ", " + box.full : ""}${box.counted ? ", " + this.flow(box) + ", " + this.held(box) : ""}`;
    },
    zoom(by) {
      this.untouched = false;
      this.scale = Math.min(2.5, Math.max(0.3, this.scale * by));
    },
    fit() {
      this.untouched = true;
      const wide = this.$el?.clientWidth;
      if (!wide || !this.drawing?.width) return;
      const high = Math.max(380, window.innerHeight - 330);
      this.scale = Math.min(1.1, Math.max(wide < 500 ? 0.6 : 0.74, Math.min((wide - 34) / this.drawing.width, high / this.drawing.height)));
    },
  },
};
