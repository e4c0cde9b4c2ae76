// Runs in the audio thread: passes on the samples of a recording, and reports the level about 20 times a second.
// Numbers travel as they are; nothing here may wait.

const REPORTS = 20; // per second

class Recorder extends AudioWorkletProcessor {
  constructor() {
    super();
    this.recording = false;
    this.peak = 0;
    this.square = 0;
    this.count = 0;
    this.port.onmessage = ({ data }) => {
      this.recording = data === "start";
      if (data === "stop") this.port.postMessage({ stopped: true });
    };
  }

  process([channels]) {
    if (!channels.length) return true; // the source is not connected yet, or the device is gone
    const samples = new Float32Array(channels[0]);
    for (let c = 1; c < channels.length; c++) for (let i = 0; i < samples.length; i++) samples[i] += channels[c][i];
    for (let i = 0; i < samples.length; i++) {
      samples[i] /= channels.length;
      const size = Math.abs(samples[i]);
      if (size > this.peak) this.peak = size;
      this.square += size * size;
    }
    this.count += samples.length;
    if (this.count >= sampleRate / REPORTS) {
      this.port.postMessage({ peak: this.peak, rms: Math.sqrt(this.square / this.count), count: this.count });
      this.peak = this.square = this.count = 0;
    }
    if (this.recording) this.port.postMessage(samples, [samples.buffer]);
    return true;
  }
}

registerProcessor("overtone-recorder", Recorder);
