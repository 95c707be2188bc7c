// The messages near the current one; a click goes to another.
export default {
  props: { messages: { type: Array, default: () => [] }, current: Number, label: String },
  template: `
    <ol class="ab-messages" :aria-label="label">
      <li v-for="one in messages" :key="one.number" :class="[one.style, {current: one.number === current}]" :aria-current="one.number === current ? 'step' : null">
        <button @click="$emit('choose', one.number)"><span class="number">{{ one.number + 1 }}</span><span class="what">{{ one.kind }}</span><span class="text">{{ one.text }}</span></button>
      </li>
    </ol>`,
  watch: {
    current() {
      this.$nextTick(() => {
        const one = this.$el.querySelector(".current");
        if (one) this.$el.scrollTop = one.offsetTop - this.$el.clientHeight / 2 + one.offsetHeight / 2;
      });
    },
  },
};
