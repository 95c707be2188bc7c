// A graph that lives: what enters grows in, what leaves fades, what takes part in a match is lit. Vertices keep their
// places from scene to scene; a small simulation of springs and charges moves them, and rests when they do.
const SETTLED = 0.02;

export default {
  props: { label: String, empty: String },
  data: () => ({ any: false, tip: null }),
  template: `
    <div class="ab-window">
      <canvas ref="canvas" role="img" :aria-label="label" tabindex="0" @pointerdown="down" @pointermove="move" @pointerup="up" @pointercancel="up"
              @pointerleave="leave" @wheel.prevent="wheel" @dblclick="frame"></canvas>
      <div v-if="!any" class="ab-empty"><p>{{ empty }}</p></div>
      <div v-if="tip" class="ab-tip" :style="{left: tip.x + 'px', top: tip.y + 'px'}"><b>{{ tip.title }}</b><span v-for="line in tip.lines" :key="line">{{ line }}</span></div>
    </div>`,
  mounted() {
    this.nodes = new Map();
    this.links = new Map();
    this.view = { x: 0, y: 0, scale: 1 };
    this.heat = 0;
    this.sizes = new ResizeObserver(this.resize);
    this.sizes.observe(this.$el);
    this.themes = new MutationObserver(() => {
      const dark = document.body.classList.contains("body--dark");
      if (dark === this.dark) return;
      this.dark = dark;
      this.palette = null;
      this.wake();
    });
    this.themes.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.resize();
  },
  beforeUnmount() {
    this.sizes.disconnect();
    this.themes.disconnect();
    cancelAnimationFrame(this.request);
    this.gone = true;
  },
  methods: {
    scene({ nodes, links }) {
      const now = performance.now();
      const seen = new Set(), joined = new Set();
      let fresh = 0;
      for (const one of nodes) {
        seen.add(one.id);
        const held = this.nodes.get(one.id);
        if (held) Object.assign(held, one, { leaves: one.state === "left" ? (held.leaves ?? now) : null });
        else {
          fresh++;
          const beside = links.find((link) => (link.source === one.id && this.nodes.has(link.target)) || (link.target === one.id && this.nodes.has(link.source)));
          const anchor = beside && this.nodes.get(beside.source === one.id ? beside.target : beside.source);
          const angle = this.nodes.size * 2.399963, far = 14 * Math.sqrt(this.nodes.size + 1);
          const place = anchor ? { x: anchor.x + 26 * Math.cos(angle), y: anchor.y + 26 * Math.sin(angle) } : { x: far * Math.cos(angle), y: far * Math.sin(angle) };
          this.nodes.set(one.id, { ...one, ...place, vx: 0, vy: 0, born: now, leaves: one.state === "left" ? now : null });
        }
      }
      for (const one of links) {
        joined.add(one.id);
        const held = this.links.get(one.id);
        if (held) Object.assign(held, one, { leaves: one.state === "left" ? (held.leaves ?? now) : null });
        else this.links.set(one.id, { ...one, born: now, leaves: one.state === "left" ? now : null });
      }
      this.spread();
      for (const [id, one] of this.nodes) if (!seen.has(id)) one.leaves ??= now;
      for (const [id, one] of this.links) if (!joined.has(id)) one.leaves ??= now;
      this.any = this.nodes.size > 0;
      const first = !this.framed && this.any;
      this.heat = Math.max(this.heat, fresh || first ? 1 : 0.25);
      if (first) for (let turn = 0; turn < 220; turn++) this.push();
      if (first || this.automatic !== false) this.frame();
      this.framed = this.any;
      this.wake();
    },
    spread() {
      // Links between the same two vertices lie side by side.
      const between = new Map();
      for (const link of this.links.values()) {
        const ends = JSON.stringify([link.source, link.target].sort());
        if (!between.has(ends)) between.set(ends, []);
        between.get(ends).push(link);
      }
      for (const beside of between.values()) {
        beside.forEach((link, index) => {
          const place = (index - (beside.length - 1) / 2) * Math.min(18, 80 / beside.length);
          link.bend = link.source > link.target ? -place : place;
        });
      }
    },
    way(a, b, bend) {
      // A curve from one vertex to another, or a loop above the only one.
      const point = (from, to, far) => {
        const dx = to.x - from.x, dy = to.y - from.y, way = Math.hypot(dx, dy) || 1;
        return { x: from.x + (dx / way) * far, y: from.y + (dy / way) * far };
      };
      let one, two;
      if (a === b) {
        const out = a.radius + 34 + 1.5 * bend;
        (one = { x: a.x - out * 0.7, y: a.y - out }), (two = { x: a.x + out * 0.7, y: a.y - out });
      } else {
        const dx = b.x - a.x, dy = b.y - a.y, far = Math.hypot(dx, dy) || 1;
        one = two = { x: (a.x + b.x) / 2 - (dy / far) * bend * 1.33, y: (a.y + b.y) / 2 + (dx / far) * bend * 1.33 };
      }
      const start = point(a, one, a.radius), end = point(b, two, b.radius + 3);
      const middle = { x: (start.x + end.x) / 8 + (one.x + two.x) * 0.375, y: (start.y + end.y) / 8 + (one.y + two.y) * 0.375 };
      const tip = point(end, b, 1);
      return { start, one, two, end, middle, ux: tip.x - end.x, uy: tip.y - end.y };
    },
    clear() {
      this.nodes?.clear();
      this.links?.clear();
      this.any = this.framed = false;
      this.automatic = true;
      this.wake();
    },
    resize() {
      const canvas = this.$refs.canvas, ratio = devicePixelRatio || 1;
      if (!canvas || !this.$el.clientWidth) return;
      canvas.width = this.$el.clientWidth * ratio;
      canvas.height = this.$el.clientHeight * ratio;
      if (this.automatic !== false) this.frame();
      this.wake();
    },
    frame() {
      this.automatic = true;
      const all = [...this.nodes.values()].filter((one) => one.leaves === null);
      const width = this.$el.clientWidth, height = this.$el.clientHeight;
      if (!all.length || !width) return;
      const xs = all.map((one) => one.x), ys = all.map((one) => one.y);
      const left = Math.min(...xs) - 60, right = Math.max(...xs) + 60, top = Math.min(...ys) - 40, bottom = Math.max(...ys) + 40;
      this.aim = { scale: Math.min(1.25, width / (right - left), height / (bottom - top)), x: (left + right) / 2, y: (top + bottom) / 2 };
      this.wake();
    },
    push() {
      const all = [...this.nodes.values()], pull = 0.006 * Math.min(1, 50 / all.length);
      for (let i = 0; i < all.length; i++) {
        const a = all[i];
        for (let j = i + 1; j < all.length; j++) {
          const b = all[j];
          let dx = a.x - b.x, dy = a.y - b.y, square = dx * dx + dy * dy;
          if (square > 160000) continue;
          if (square < 1) (dx = 0.5 - (i % 2)), (dy = 0.3), (square = 1);
          const force = 2600 / square / Math.sqrt(square);
          a.vx += dx * force, a.vy += dy * force, b.vx -= dx * force, b.vy -= dy * force;
        }
        a.vx -= a.x * pull;
        a.vy -= a.y * pull * 1.5;
      }
      for (const link of this.links.values()) {
        const a = this.nodes.get(link.source), b = this.nodes.get(link.target);
        if (!a || !b || a === b) continue;
        const dx = b.x - a.x, dy = b.y - a.y, far = Math.hypot(dx, dy) || 1, force = ((far - 84) / far) * 0.045;
        a.vx += dx * force, a.vy += dy * force, b.vx -= dx * force, b.vy -= dy * force;
      }
      let most = 0;
      for (const one of all) {
        if (one !== this.held) {
          const speed = Math.min(12, Math.hypot(one.vx, one.vy)), way = Math.hypot(one.vx, one.vy) || 1;
          one.x += (one.vx / way) * speed * this.heat;
          one.y += (one.vy / way) * speed * this.heat;
          most = Math.max(most, speed);
        }
        one.vx *= 0.72;
        one.vy *= 0.72;
      }
      return most;
    },
    wake() {
      if (!this.gone && !this.request) this.request = requestAnimationFrame(this.turn);
    },
    turn(now) {
      this.request = null;
      for (const [id, one] of this.nodes) if (one.leaves !== null && now - one.leaves > 900) this.nodes.delete(id);
      for (const [id, one] of this.links) if (one.leaves !== null && now - one.leaves > 900) this.links.delete(id);
      this.any = this.nodes.size > 0;
      const most = this.heat > SETTLED ? this.push() : 0;
      this.heat *= this.still ? 0.8 : 0.985;
      if (most < 0.05 && !this.held) this.heat *= 0.9;
      if (this.aim && this.automatic !== false) {
        const by = this.still ? 1 : 0.18;
        for (const key of ["x", "y", "scale"]) this.view[key] += (this.aim[key] - this.view[key]) * by;
        if (this.heat > SETTLED) this.frame();
      }
      const moving = this.aim && Math.abs(this.aim.scale - this.view.scale) > 0.002;
      this.draw(now);
      const fading = [...this.nodes.values(), ...this.links.values()].some((one) => one.leaves !== null || now - one.born < 900);
      if (this.heat > SETTLED || fading || moving) this.wake();
    },
    colours() {
      if (this.palette) return this.palette;
      const style = getComputedStyle(document.body);
      const get = (name) => style.getPropertyValue(name).trim();
      this.palette = { ink: get("--ink"), faint: get("--faint"), line: get("--edge"), node: get("--node"), lit: get("--lit"), litWash: get("--lit-wash"), enter: get("--enter"), leave: get("--leave"), card: get("--card"), font: getComputedStyle(this.$el).fontFamily };
      return this.palette;
    },
    draw(now) {
      const canvas = this.$refs.canvas;
      if (!canvas || !canvas.width) return;
      const pen = canvas.getContext("2d"), ratio = devicePixelRatio || 1, colours = this.colours(), view = this.view;
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, canvas.width, canvas.height);
      pen.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, canvas.width / 2 - view.x * ratio * view.scale, canvas.height / 2 - view.y * ratio * view.scale);
      const within = (share) => Math.max(0, Math.min(1, share)); // a frame's time may lie a little before an element's
      const presence = (one) => (one.leaves !== null ? within(1 - (now - one.leaves) / 900) : within((now - one.born) / 350));
      const crowded = this.nodes.size > 26, many = [...this.nodes.values()].filter((one) => one.matched).length > 40;
      const small = 1 / Math.max(0.5, view.scale);
      for (const link of this.links.values()) {
        const a = this.nodes.get(link.source), b = this.nodes.get(link.target);
        if (!a || !b) continue;
        pen.globalAlpha = presence(link) * (many ? 0.55 : link.matched ? 1 : 0.75);
        pen.strokeStyle = pen.fillStyle = link.leaves !== null ? colours.leave : link.matched ? colours.lit : link.state === "entered" ? colours.enter : colours.line;
        pen.lineWidth = link.matched && !many ? 2.2 : 1.1;
        const { start, one, two, end, middle, ux, uy } = this.way(a, b, link.bend);
        pen.beginPath();
        pen.moveTo(start.x, start.y);
        pen.bezierCurveTo(one.x, one.y, two.x, two.y, end.x, end.y);
        pen.stroke();
        pen.beginPath();
        pen.moveTo(end.x + ux * 3, end.y + uy * 3);
        pen.lineTo(end.x - ux * 4 - uy * 3, end.y - uy * 4 + ux * 3);
        pen.lineTo(end.x - ux * 4 + uy * 3, end.y - uy * 4 - ux * 3);
        pen.fill();
        if (link.label && !crowded && view.scale > 0.6) {
          pen.font = `${10 * small}px ${colours.font}`;
          pen.textAlign = "center";
          const x = middle.x, y = middle.y - 4;
          pen.lineWidth = 3 * small;
          pen.strokeStyle = colours.card;
          pen.strokeText(link.label, x, y);
          pen.fillStyle = link.matched ? colours.lit : colours.faint;
          pen.fillText(link.label, x, y);
        }
      }
      for (const one of this.nodes.values()) {
        const there = presence(one);
        pen.globalAlpha = there;
        const radius = one.radius * (one.leaves !== null ? 1 : 0.4 + 0.6 * there);
        if (one.matched) {
          pen.fillStyle = colours.litWash;
          pen.beginPath();
          pen.arc(one.x, one.y, radius + 6, 0, 7);
          pen.fill();
        }
        pen.fillStyle = one.colour || colours.node;
        pen.beginPath();
        pen.arc(one.x, one.y, radius, 0, 7);
        pen.fill();
        pen.lineWidth = one.state === "entered" || one.matched ? 2.4 : 1.2;
        pen.strokeStyle = one.leaves !== null ? colours.leave : one.matched ? colours.lit : one.state === "entered" ? colours.enter : colours.card;
        pen.stroke();
        if (one.title && (one === this.over || (one.leaves === null && ((one.matched && !many) || !crowded)))) {
          pen.font = `${one.matched ? 500 : 400} ${11.5 * small}px ${colours.font}`;
          pen.textAlign = "center";
          pen.lineWidth = 3.5 * small;
          pen.lineJoin = "round";
          pen.strokeStyle = colours.card;
          pen.strokeText(one.title, one.x, one.y + radius + 4 + 9 * small);
          pen.fillStyle = one.matched ? colours.ink : colours.faint;
          pen.fillText(one.title, one.x, one.y + radius + 4 + 9 * small);
        }
      }
      pen.globalAlpha = 1;
    },
    at(event) {
      const box = this.$refs.canvas.getBoundingClientRect();
      const px = event.clientX - box.left, py = event.clientY - box.top;
      return { px, py, x: (px - box.width / 2) / this.view.scale + this.view.x, y: (py - box.height / 2) / this.view.scale + this.view.y };
    },
    find(place) {
      let best = null, near = 16 / this.view.scale;
      for (const one of this.nodes.values()) {
        const far = Math.hypot(one.x - place.x, one.y - place.y);
        if (far < Math.max(near, one.radius)) (best = one), (near = far);
      }
      return best;
    },
    down(event) {
      const place = this.at(event);
      this.held = this.find(place);
      this.drag = { ...place, view: { ...this.view } };
      this.$refs.canvas.setPointerCapture(event.pointerId);
    },
    move(event) {
      const place = this.at(event);
      if (this.held) {
        this.held.x = place.x;
        this.held.y = place.y;
        this.heat = Math.max(this.heat, 0.4);
        this.automatic = false;
        this.wake();
      } else if (this.drag) {
        this.automatic = false;
        this.view.x = this.drag.view.x - (place.px - this.drag.px) / this.view.scale;
        this.view.y = this.drag.view.y - (place.py - this.drag.py) / this.view.scale;
        this.wake();
      } else {
        const over = this.find(place);
        if (over !== this.over) {
          this.over = over;
          this.wake();
        }
        this.tip = over ? { x: Math.min(place.px + 14, this.$el.clientWidth - 230), y: Math.min(place.py + 14, this.$el.clientHeight - 90), title: over.full || over.title, lines: over.lines || [] } : null;
      }
    },
    up() {
      this.held = this.drag = null;
    },
    leave() {
      this.tip = this.over = null;
    },
    wheel(event) {
      this.automatic = false;
      this.view.scale = Math.min(4, Math.max(0.15, this.view.scale * Math.exp(-event.deltaY * 0.0015)));
      this.wake();
    },
  },
};
