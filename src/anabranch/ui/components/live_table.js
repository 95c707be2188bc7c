// The rows of an answer. The server sends the order of the rows by their keys, and the cells of those that are new;
// what is no longer in the order stays for one beat, struck through, and then goes.
const BEAT = 900;
const LEAVING = 40; // more are not struck through: they go at once

export default {
  props: {
    columns: { type: Array, default: () => [] }, // {name, label, numeric, pickable}
    ticked: { type: Array, default: () => [] },
    label: String,
    empty: String,
    hint: String,
    leftHint: String, // of a row that is leaving
    clickable: Boolean,
    steady: Boolean,
  },
  data: () => ({ rows: [], sorted: null, descending: false, floor: 0 }),
  template: `
    <div class="ab-table-box" :style="{minHeight: floor + 'px'}" role="region" :aria-label="label" tabindex="0">
      <table v-if="columns.length" class="ab-table">
        <thead>
          <tr>
            <th v-for="(column, index) in columns" :key="column.name" scope="col" :class="{numeric: column.numeric}"
                :aria-sort="sorted === index ? (descending ? 'descending' : 'ascending') : 'none'">
              <span class="ab-th">
                <button v-if="column.pickable" class="ab-tick" :class="{on: ticked.includes(column.name)}" role="checkbox"
                        :aria-checked="ticked.includes(column.name)" :aria-label="'draw ' + column.label + ' over time'"
                        :title="'Draw ' + column.label + ' over time'" @click="$emit('tick', column.name)">
                  <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1.5 12 L5.5 7 L9 9.5 L14.5 3"/></svg>
                </button>
                <button class="ab-sort" :title="'Sort by ' + column.label" @click="sort(index)">{{ column.label }}<i
                  v-if="sorted === index" aria-hidden="true">{{ descending ? '↓' : '↑' }}</i></button>
              </span>
            </th>
          </tr>
        </thead>
        <tbody>
          <tr v-for="row in shown" :key="row.key" :class="row.state" :tabindex="clickable ? 0 : null"
              :title="clickable ? (row.state === 'leaving' ? leftHint : hint) : null" @click="choose(row)" @keydown.enter="choose(row)">
            <td v-for="(cell, index) in row.cells" :key="index" :class="{numeric: columns[index]?.numeric, nothing: cell === null, changed: row.changed?.[index]}"
                :title="Array.isArray(cell) ? cell[1] : null">{{ cell === null ? '–' : Array.isArray(cell) ? cell[0] : cell }}</td>
          </tr>
        </tbody>
      </table>
      <div v-if="!rows.length" class="ab-empty"><slot></slot><p>{{ empty }}</p></div>
    </div>`,
  computed: {
    shown() {
      if (this.sorted === null) return this.rows;
      const cell = (row) => row.cells[this.sorted] ?? null;
      const text = (row) => [cell(row)].flat()[0];
      const number = (row) => Number([cell(row)].flat().at(-1)); // the full one; what is seen has been rounded
      const by = this.columns[this.sorted]?.numeric ? (a, b) => number(a) - number(b) : (a, b) => text(a).localeCompare(text(b));
      const rows = this.rows.filter((row) => cell(row) !== null).sort(by);
      return [...(this.descending ? rows.reverse() : rows), ...this.rows.filter((row) => cell(row) === null)];
    },
  },
  beforeUnmount() {
    clearTimeout(this.timer);
  },
  methods: {
    patch({ order, fresh, still }) {
      const known = new Map(this.rows.filter((row) => row.state !== "leaving").map((row) => [row.key, row]));
      const next = order.map((key) => {
        const cells = fresh[key];
        const row = known.get(key);
        if (cells) {
          const told = (cell) => (Array.isArray(cell) ? cell[0] : cell);
          const changed = row && !still ? cells.map((cell, index) => told(cell) !== told(row.cells[index])) : null;
          return { key, cells, changed, state: still || row ? "" : "entering" };
        }
        return row && { ...row, state: "", changed: null };
      });
      const rows = next.filter(Boolean);
      if (!still) {
        const kept = new Set(order);
        let room = LEAVING;
        this.rows.forEach((row, index) => {
          if (row.state !== "leaving" && !kept.has(row.key) && room-- > 0) rows.splice(Math.min(index, rows.length), 0, { ...row, state: "leaving" });
        });
      }
      this.rows = rows;
      if (!order.length && still) this.floor = 0;
      else if (this.steady) this.$nextTick(() => (this.floor = Math.max(this.floor, this.$el.offsetHeight))); // what is below stays where it is
      clearTimeout(this.timer);
      if (!still) this.timer = setTimeout(this.settle, BEAT);
    },
    settle() {
      this.rows = this.rows.filter((row) => row.state !== "leaving").map((row) => (row.state || row.changed ? { ...row, state: "", changed: null } : row));
    },
    sort(index) {
      if (this.sorted === index && this.descending) this.sorted = null;
      else {
        this.descending = this.sorted === index;
        this.sorted = index;
      }
    },
    choose(row) {
      if (this.clickable && !window.getSelection()?.toString()) this.$emit("choose", row.key);
    },
  },
};
