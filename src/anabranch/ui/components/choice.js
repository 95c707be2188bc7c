// A native list to choose from: what a keyboard, a phone and a screen reader know already.
export default {
  props: { options: { type: Array, default: () => [] }, value: [String, Number], label: String, hidden: Boolean },
  template: `
    <label class="ab-select"><span v-if="!hidden">{{ label }}</span>
      <select :aria-label="label" :value="value" @change="$emit('pick', $event.target.value)">
        <option v-for="one in options" :key="one.value" :value="one.value">{{ one.label }}</option>
      </select>
    </label>`,
};
