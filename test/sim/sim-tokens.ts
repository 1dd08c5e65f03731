/**
 * Who issues service account tokens in the simulation: another one in each life of the agent, as a machine does that
 * keeps none on disk, and now and then another one in life. Each of them is a secret.
 */
import { NO_TOKENS, type TokenSource } from '../../agent/source/token-source.ts';
import type { Cancel } from '../../mount/host.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import type { PodReference } from '../../plugins/volume.ts';
import type { Random } from './random.ts';
import { CANARY } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface SimTokensParts {
  readonly random: Random;
  readonly time: VirtualTime;
  /** Tokens become others in life as well. */
  readonly rotates: boolean;
  /** False once all faults are healed: one more comes then, and no other. */
  readonly stormy: () => boolean;
}

const LIFE_MS_MAX = 60_000;

export class SimTokens implements TokenSource {
  readonly #parts: SimTokensParts;
  readonly #listeners = new Set<() => void>();
  #issue = 0;

  constructor(parts: SimTokensParts) {
    this.#parts = parts;
    if (parts.rotates) this.#schedule();
  }

  /** What is to be in the file of a pod's token now. */
  textFor(uid: string): string {
    return `${CANARY}-token-${uid}-${this.#issue}`;
  }

  /** The agent starts again, and its old tokens are forgotten. */
  beginLife(): void {
    this.#listeners.clear();
    this.#issue += 1;
  }

  readonly tokensFor = NO_TOKENS.tokensFor;

  tokenFor({ uid }: PodReference): ReturnType<TokenSource['tokenFor']> {
    return { kind: 'token', token: new Sensitive(this.textFor(uid)), issue: String(this.#issue) };
  }

  onChange(listener: () => void): Cancel {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #schedule(): void {
    const { random, time, stormy } = this.#parts;
    time.after(random.between(1_000, LIFE_MS_MAX), () => {
      this.#issue += 1;
      for (const listener of this.#listeners) listener();
      // The last one comes when nothing else happens any more that would have the agent read the wish again.
      if (stormy()) this.#schedule();
    });
  }
}
