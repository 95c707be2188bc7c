// A line to move along. What it stands at comes from the server, except while it is held.
export default {
  props: { most: Number, value: Number, label: String, text: String },
  data: () => ({ held: null }),
  template: `
    <label class="ab-slider"><input type="range" min="0" :max="most" :value="held ?? value" :aria-label="label" :aria-valuetext="text"
      @input="held = Number($event.target.value); $emit('move', held)" @change="held = null"/><span>{{ text }}</span></label>`,
};
