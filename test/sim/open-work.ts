/** What a life of the agent has begun and was not answered yet: the truth behind its reasons. */
import type { FileSystem } from './file-tree.ts';
import type { RemoteCall } from '../../mount/remote-call.ts';
import type { EffectKind } from './weather.ts';

export interface OpenEffect {
  readonly kind: EffectKind;
  readonly path: string;
}

/** A call about a volume that is under way. */
export interface OpenCall {
  readonly method: string;
  readonly volumeId: string;
  readonly targetPath: string | undefined;
}

/** An effect that waits for a file system that hangs. */
export interface OpenHang extends OpenEffect {
  readonly fileSystem: FileSystem;
  /** When the effect was begun. */
  readonly sinceMs: number;
}

/** The last answer to a call about a volume. */
export interface HeardAnswer {
  readonly ok: boolean;
  /** When it was answered OK last: of two pods one may be told so, and the other that the volume is busy. */
  readonly okAtMs: number | undefined;
}

export class OpenWork {
  readonly #nowMs: () => number;
  readonly #effects = new Set<OpenEffect>();
  readonly #calls = new Set<OpenCall>();
  readonly #hangs = new Set<OpenHang>();
  readonly #asked = new Map<string, number>();
  readonly #heard = new Map<string, HeardAnswer>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  effects(): readonly OpenEffect[] {
    return [...this.#effects];
  }

  calls(): readonly OpenCall[] {
    return [...this.#calls];
  }

  hangs(): readonly OpenHang[] {
    return [...this.#hangs];
  }

  /** When a driver was last asked for the numbers of the volume; undefined: not in this life. */
  askedMs(volumeId: string): number | undefined {
    return this.#asked.get(volumeId);
  }

  /** What was answered last to this method about the volume; undefined: nothing. */
  heard(volumeId: string, method: string): HeardAnswer | undefined {
    return this.#heard.get(`${volumeId} ${method}`);
  }

  beginHang(hang: OpenHang): () => void {
    this.#hangs.add(hang);
    return () => this.#hangs.delete(hang);
  }

  /** Call what it returns when it was answered. */
  beginEffect(effect: OpenEffect): () => void {
    this.#effects.add(effect);
    return () => this.#effects.delete(effect);
  }

  /** Call what it returns when it was answered, well or not. */
  beginCall({ method, request }: RemoteCall<unknown, unknown>): (ok: boolean) => void {
    const { volumeId, targetPath } = request as { readonly volumeId?: string; readonly targetPath?: string };
    if (volumeId === undefined) return () => {};
    const call = { method: method.path.slice(method.path.lastIndexOf('/') + 1), volumeId, targetPath };
    this.#calls.add(call);
    if (call.method === 'NodeGetVolumeStats') this.#asked.set(volumeId, this.#nowMs());
    return (ok) => {
      this.#calls.delete(call);
      const about = `${volumeId} ${call.method}`;
      this.#heard.set(about, { ok, okAtMs: ok ? this.#nowMs() : this.#heard.get(about)?.okAtMs });
    };
  }
}
