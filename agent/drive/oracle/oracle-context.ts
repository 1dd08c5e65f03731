/** What a rule of the oracle is given with a call, and what it says of it. */
import type { BeginningCall, VolumeHistory } from './oracle-history.ts';
import type { DriverNature } from './oracle-nature.ts';

export interface Violation {
  /** `A-054`; several rules may share one id. */
  readonly duty: string;
  /** `should`: the specification advises it. */
  readonly level: 'must' | 'should';
  readonly text: string;
}

export interface OracleOptions {
  /** What is known of the driver beforehand; more is learnt from the identity and capability calls that go by. */
  readonly nature?: DriverNature;
  /** Publish and unpublish of one volume at different targets may overlap (a per-driver option of ours). */
  readonly parallelPublish?: boolean;
  /** Values that must appear in `secrets` fields only. */
  readonly canaries?: readonly string[];
  /** The wish did not change while it was watched: every call with the same place must have the same arguments. */
  readonly steadyWish?: boolean;
  /** As long as the orchestrator waits for an answer: a call that is open for longer nobody waits for any more. */
  readonly callerMs?: number;
}

export interface OracleContext {
  readonly call: BeginningCall;
  readonly nature: DriverNature;
  /** Undefined for a call that is about no volume. */
  readonly history: VolumeHistory | undefined;
  readonly options: OracleOptions;
  readonly violate: (duty: string, text: string, level?: Violation['level']) => void;
}
