// A level meter from -60 dB to full scale with a mark where speech should be, and a light that shows clipping.

import { h } from './dom.js';
import { decibel } from './microphone.js';

const LOWEST = -60;
const LIGHT_MS = 1500;
const FALL = 1.2; // dB per report, so that peaks can be seen

export class Meter {
  constructor() {
    this.bar = h('span', { class: 'level' });
    this.light = h('span', { class: 'clip', role: 'status' });
    this.element = h('div', { class: 'meter' }, h('div', { class: 'track', 'aria-hidden': 'true' }, this.bar, h('span', { class: 'goal' })), this.light);
    this.shown = LOWEST;
    this.until = 0;
  }

  show({ peak, clipped }) {
    this.shown = Math.max(decibel(peak), this.shown - FALL, LOWEST);
    this.bar.style.transform = `scaleX(${(this.shown - LOWEST) / -LOWEST})`;
    const now = performance.now();
    if (clipped) this.until = now + LIGHT_MS;
    const lit = now < this.until;
    if (lit !== this.light.classList.contains('lit')) {
      this.light.classList.toggle('lit', lit);
      this.light.textContent = lit ? 'Too loud' : '';
    }
  }

  clear() {
    this.shown = LOWEST;
    this.bar.style.transform = 'scaleX(0)';
    this.light.classList.remove('lit');
    this.light.textContent = '';
  }
}
