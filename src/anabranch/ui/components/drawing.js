// A drawing of EXPLAIN. It has a style sheet of its own, which must not reach the page: it lives behind a shadow root.
export default {
  props: { svg: String, label: String },
  template: `<div class="ab-svg" role="img" :aria-label="label"></div>`,
  mounted() {
    this.root = this.$el.attachShadow({ mode: "open" });
    this.show();
  },
  watch: { svg: "show" },
  methods: {
    show() {
      this.root.innerHTML = this.svg + "<style>svg { max-width: none; height: auto; --line: var(--edge); } .paper { fill: transparent; }</style>";
    },
  },
};
