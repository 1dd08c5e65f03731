/**
 * The mirror of csi-sanity: judges one orchestrator by the calls a driver received from it. Pure: it is told what
 * happened, holds no clock and asks nobody. Rules carry the ids of docs/CSI.md.
 *
 * It knows what the specification lets a driver know: which call of a volume is open, what was asked, what was
 * answered. A call that was not answered OK leaves its rung `unsure`, unless the code promises that nothing happened.
 */
import { judgeFields } from './oracle-fields.ts';
import {
  type BeginningCall,
  createHistory,
  doubt,
  type EndedCall,
  settle,
  type VolumeHistory,
} from './oracle-history.ts';
import type { OracleOptions, Violation } from './oracle-context.ts';
import { type DriverNature, learn, UNKNOWN_NATURE } from './oracle-nature.ts';
import { judgeOrder } from './oracle-order.ts';

const VIOLATIONS_MAX = 1_000;

export class CallOracle {
  readonly #options: OracleOptions;
  readonly #volumes = new Map<string, VolumeHistory>();
  readonly #violations: Violation[] = [];
  #nature: DriverNature;
  #calls = 0;

  constructor(options: OracleOptions = {}) {
    this.#options = options;
    this.#nature = options.nature ?? UNKNOWN_NATURE;
  }

  /** In the order they were found; at most 1,000. */
  get violations(): readonly Violation[] {
    return this.#violations;
  }

  get calls(): number {
    return this.#calls;
  }

  /** A call has arrived. Call what it returns with the answer, once. */
  begin(call: BeginningCall): (ended: EndedCall) => void {
    this.#calls += 1;
    const violate = (duty: string, text: string, level: Violation['level'] = 'must'): void => {
      if (this.#violations.length < VIOLATIONS_MAX) this.#violations.push({ duty, level, text });
    };
    const { volumeId } = call.request;
    const history = volumeId === undefined ? undefined : this.#historyOf(volumeId);
    if (history !== undefined) this.#forgetGivenUp(history, call);
    const context = { call, nature: this.#nature, history, options: this.#options, violate };
    judgeFields(context);
    judgeOrder(context);
    if (history === undefined) return (ended) => this.#learn(call, ended);
    history.open.add(call);
    const takeBack = doubt(call, history);
    return (ended) => {
      history.open.delete(call);
      this.#learn(call, ended);
      settle(call, ended, history, takeBack);
    };
  }

  /** The node was started anew: nothing is staged or published, no call is open. Attachments stay. */
  forgetNode(): void {
    for (const history of this.#volumes.values()) {
      history.open.clear();
      history.staged = 'none';
      history.published.clear();
      history.pending.clear();
      history.expandRefused = false;
    }
  }

  /** The driver's process is gone: calls it had open got no answer. */
  forgetOpenCalls(): void {
    for (const history of this.#volumes.values()) history.open.clear();
  }

  /** What a driver must believe is still in use: empty after a complete tear-down. */
  remains(): readonly string[] {
    return [...this.#volumes].flatMap(([id, { attached, staged, published }]) => [
      ...[...published].map(([target, { rung }]) => `${id} published at ${target}: ${rung}`),
      ...(staged === 'none' ? [] : [`${id} staged: ${staged}`]),
      ...(attached === 'none' ? [] : [`${id} attached: ${attached}`]),
    ]);
  }

  /** Its caller's deadline has passed; the driver may not know that, and goes on. */
  #forgetGivenUp({ open }: VolumeHistory, { startMs: nowMs }: BeginningCall): void {
    const { callerMs } = this.#options;
    if (callerMs === undefined || nowMs === undefined) return;
    for (const call of open) if ((call.startMs ?? nowMs) + callerMs <= nowMs) open.delete(call);
  }

  #learn(call: BeginningCall, ended: EndedCall): void {
    this.#nature = learn(this.#nature, call.method, ended);
    if (call.method.endsWith('GetCapabilities') && ended.code === 0) {
      for (const history of this.#volumes.values()) history.unimplemented.clear();
    }
  }

  #historyOf(volumeId: string): VolumeHistory {
    const known = this.#volumes.get(volumeId);
    if (known !== undefined) return known;
    const fresh = createHistory();
    this.#volumes.set(volumeId, fresh);
    return fresh;
  }
}
