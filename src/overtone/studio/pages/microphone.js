// A microphone that records 16-bit mono WAV at the device's own rate, and reports its level while it is open.
//
//   const mic = await openMicrophone({ onLevel: ({ peak, rms, clipped }) => …, onLost: (error) => … });
//   mic.settings                 what the device really does: sampleRate, autoGainControl, noiseSuppression, …
//   await mic.noise(1)           level of one second in dB re full scale (RMS), -120 for digital silence
//   mic.start(); const take = await mic.stop();   → { wav: Blob, seconds, peak, rms, clipped }
//   mic.close()
//
// MediaRecorder gives no WAV in Chromium, and its codecs would change the voice. Errors are MicrophoneErrors; `reason` is
// insecure (no https), denied, missing (no device), busy, lost (unplugged or taken away) or unsupported.

const WISHES = { autoGainControl: false, noiseSuppression: false, echoCancellation: false, voiceIsolation: false };
const PRIVATE = ["deviceId", "groupId"]; // would identify the device across sites
const FULL = 32766 / 32768; // a run of three samples at full scale is clipped
const STOP_MS = 2000;
const WAKE_MS = 1000; // a device begins with some silence; a muted one stays silent

const MESSAGES = {
  insecure:
    "The browser gives a page the microphone only over https or on this computer itself. Ask the organiser for a link that begins with https://.",
  denied:
    "The browser did not allow this page to use the microphone. Click the lock or microphone symbol beside the address, allow the microphone, and try again.",
  missing: "No microphone was found. Plug one in, or switch it on, and try again.",
  busy: "The microphone cannot be opened. Close other programs that use it (a call, a recorder), and try again.",
  lost: "The microphone is gone: it was unplugged, switched off or taken by another program. Connect it and try again.",
  unsupported: "This browser cannot record sound. Use a current Firefox, Chrome, Edge or Safari.",
};

const REASONS = {
  NotAllowedError: "denied",
  SecurityError: "denied",
  NotFoundError: "missing",
  OverconstrainedError: "missing",
  NotReadableError: "busy",
  AbortError: "busy",
};

export class MicrophoneError extends Error {
  constructor(reason, detail = "") {
    super(MESSAGES[reason]);
    this.name = "MicrophoneError";
    this.reason = reason;
    this.detail = detail;
  }
}

/** Return why this page cannot record ("insecure" or "unsupported"), or "". Asks for no permission. */
export function whyNoMicrophone() {
  if (!window.isSecureContext) return "insecure";
  return navigator.mediaDevices?.getUserMedia && window.AudioWorkletNode ? "" : "unsupported";
}

export function explain(reason) {
  return MESSAGES[reason] ?? MESSAGES.unsupported;
}

/** Return the microphones as {id, label}; labels are empty until the permission was given. */
export async function microphones() {
  const devices = await navigator.mediaDevices.enumerateDevices();
  return devices.filter((d) => d.kind === "audioinput").map((d) => ({ id: d.deviceId, label: d.label }));
}

/** Ask for the microphone and open it. Raises MicrophoneError. */
export async function openMicrophone({ onLevel = () => {}, onLost = () => {}, device = "" } = {}) {
  const reason = whyNoMicrophone();
  if (reason) throw new MicrophoneError(reason);
  let stream;
  try {
    const audio = { ...WISHES, channelCount: 1, ...(device ? { deviceId: { exact: device } } : {}) };
    stream = await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    throw new MicrophoneError(REASONS[error.name] ?? "busy", String(error));
  }
  try {
    return await Microphone.over(stream, onLevel, onLost);
  } catch (error) {
    stream.getTracks().forEach((track) => track.stop());
    throw error instanceof MicrophoneError ? error : new MicrophoneError("busy", String(error));
  }
}

class Microphone {
  static async over(stream, onLevel, onLost) {
    const [track] = stream.getAudioTracks();
    const settings = track.getSettings();
    // At the device's own rate nothing is resampled, and Firefox refuses to connect two rates.
    const context = new AudioContext(settings.sampleRate ? { sampleRate: settings.sampleRate } : {});
    await context.audioWorklet.addModule(new URL("microphone-worklet.js", import.meta.url));
    await context.resume();
    const microphone = new Microphone(stream, track, settings, context, onLevel, onLost);
    await Promise.race([microphone.awake, new Promise((resolve) => setTimeout(resolve, WAKE_MS))]);
    return microphone;
  }

  constructor(stream, track, settings, context, onLevel, onLost) {
    Object.assign(this, { stream, track, context, onLevel, onLost });
    this.settings = { ...settings, sampleRate: context.sampleRate };
    this.label = track.label; // shown to the speaker only: it may contain a name
    for (const name of PRIVATE) delete this.settings[name];
    this.chunks = [];
    this.noises = [];
    this.stopped = null;
    this.lost = false;
    this.awake = new Promise((resolve) => (this.woke = resolve));
    const source = context.createMediaStreamSource(stream);
    this.node = new AudioWorkletNode(context, "overtone-recorder", { numberOfOutputs: 1, outputChannelCount: [1] });
    this.node.port.onmessage = ({ data }) => this.#heard(data);
    source.connect(this.node).connect(context.destination); // its output is silence; unconnected nodes are not run
    track.addEventListener("ended", () => this.#gone());
  }

  /** Begin a recording; what was recorded and not fetched with stop() is dropped. */
  start() {
    if (this.lost) throw new MicrophoneError("lost");
    this.chunks = [];
    this.node.port.postMessage("start");
  }

  /** End the recording and return it. A lost microphone gives what was recorded until then. */
  async stop() {
    if (!this.lost) {
      await new Promise((resolve) => {
        this.stopped = resolve;
        this.node.port.postMessage("stop");
        setTimeout(resolve, STOP_MS);
      });
    }
    const chunks = this.chunks;
    this.chunks = [];
    return take(chunks, this.settings.sampleRate);
  }

  /** Listen for some seconds; return the mean level in dB re full scale. */
  async noise(seconds = 1) {
    const heard = [];
    this.noises.push(heard);
    try {
      const end = performance.now() + 1000 * seconds + 5000;
      while (heard.reduce((n, one) => n + one.count, 0) < seconds * this.settings.sampleRate) {
        if (this.lost || performance.now() > end) throw new MicrophoneError("lost");
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    } finally {
      this.noises.splice(this.noises.indexOf(heard), 1);
    }
    const count = heard.reduce((n, one) => n + one.count, 0);
    return decibel(Math.sqrt(heard.reduce((sum, one) => sum + one.rms ** 2 * one.count, 0) / count));
  }

  close() {
    this.onLevel = this.onLost = () => {};
    this.track.stop();
    this.node.disconnect();
    if (this.context.state !== "closed") this.context.close();
  }

  #heard(data) {
    if (data instanceof Float32Array) this.chunks.push(data);
    else if (data.stopped) this.stopped?.();
    else {
      if (data.rms > 0) this.woke();
      for (const heard of this.noises) heard.push(data);
      this.onLevel({ peak: data.peak, rms: data.rms, clipped: data.peak >= FULL });
    }
  }

  #gone() {
    this.lost = true;
    this.stopped?.();
    this.onLost(new MicrophoneError("lost"));
  }
}

/** Return a level in dB re full scale, at least -120. */
export function decibel(level) {
  return Math.max(20 * Math.log10(level || 1e-6), -120);
}

function take(chunks, rate) {
  const length = chunks.reduce((n, chunk) => n + chunk.length, 0);
  const pcm = new DataView(new ArrayBuffer(44 + 2 * length));
  let at = 44;
  let peak = 0;
  let square = 0;
  let clipped = 0;
  let run = 0;
  for (const chunk of chunks) {
    for (const x of chunk) {
      const size = Math.abs(x);
      peak = Math.max(peak, size);
      square += x * x;
      run = size >= FULL ? run + 1 : 0;
      clipped += run === 3 ? 3 : run > 3 ? 1 : 0;
      pcm.setInt16(at, Math.max(-32768, Math.min(32767, Math.round(x * 32768))), true);
      at += 2;
    }
  }
  header(pcm, 2 * length, rate);
  const wav = new Blob([pcm.buffer], { type: "audio/wav" });
  return { wav, seconds: length / rate, peak, rms: length ? Math.sqrt(square / length) : 0, clipped };
}

function header(view, bytes, rate) {
  const text = (at, word) => [...word].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + bytes, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true); // mono
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, bytes, true);
}
