/** What a life of the agent has begun and was not answered yet: the truth behind its reasons. */
import type { RemoteCall } from '../../mount/host.ts';
import type { EffectKind } from './weather.ts';

export interface OpenEffect {
  readonly kind: EffectKind;
  readonly path: string;
}

/** Of a call about a volume. */
export interface OpenCall {
  readonly method: string;
  readonly volumeId: string;
  readonly targetPath: string | undefined;
}

export class OpenWork {
  readonly #effects = new Set<OpenEffect>();
  readonly #calls = new Set<OpenCall>();

  effects(): readonly OpenEffect[] {
    return [...this.#effects];
  }

  calls(): readonly OpenCall[] {
    return [...this.#calls];
  }

  /** Call what it returns when it was answered. */
  beginEffect(effect: OpenEffect): () => void {
    this.#effects.add(effect);
    return () => this.#effects.delete(effect);
  }

  beginCall({ method, request }: RemoteCall<unknown, unknown>): () => void {
    const { volumeId, targetPath } = request as { readonly volumeId?: string; readonly targetPath?: string };
    if (volumeId === undefined) return () => {};
    const call = { method: method.path.slice(method.path.lastIndexOf('/') + 1), volumeId, targetPath };
    this.#calls.add(call);
    return () => this.#calls.delete(call);
  }
}
