/**
 * The judge between an orchestrator and a driver: the recording proxy of `mooring drive` with its oracle. Orchestrators
 * dial the proxy, because the registrar announces its socket; the driver serves behind it.
 */
import { join } from 'node:path';
import { CLOCK } from '../../agent/drive/rig/machine.ts';
import { CallOracle } from '../../agent/drive/oracle/oracle.ts';
import type { OracleOptions, Violation } from '../../agent/drive/oracle/oracle-context.ts';
import { type CallProxy, startProxy } from '../../agent/drive/proxy/proxy.ts';
import { createGrpcRemote, type GrpcRemote } from '../../plugins/csi/wire/grpc.ts';

/** A rule that cannot hold for one driver or kind of volume. One that nothing needed is a failure of its own. */
export interface Excuse {
  readonly duty: string;
  /** What the violation's text looks like. */
  readonly text: RegExp;
  readonly because: string;
}

export interface Witness {
  /** Where orchestrators dial. */
  readonly front: string;
  /** Where the driver serves. */
  readonly behind: string;
  readonly oracle: CallOracle;
  /** The driver must listen by now. */
  open(): Promise<void>;
  /** As when the driver dies: the socket goes, its connections break, what was asked is not answered. */
  close(): Promise<void>;
  /** Every orchestrator that had asked is dead: nobody waits any more for a call that the driver has still open. */
  callersAreGone(): void;
  excuse(excuse: Excuse): void;
  /** The next call of this method has arrived; the driver may not have seen it yet. */
  arrival(method: string): Promise<void>;
  /** What breaks a rule, what was left in use, and excuses nothing needed. Empty: all is well. */
  verdict(): readonly string[];
}

/** Longer than any agent of these tests waits: a caller that gives up does not stop the driver. */
const DRIVER_MS = 300_000;

/** Advice, and the layout of the kubelet itself is longer: 64 characters of a hash, and the path of the state root. */
const isLongPath = ({ duty, level }: Violation): boolean => duty === 'A-014' && level === 'should';

export function createWitness(
  driver: string,
  front: string,
  directory: string,
  options: OracleOptions,
): Witness {
  const oracle = new CallOracle(options);
  const behind = join(directory, `${driver}.sock`);
  const excuses: Excuse[] = [];
  const awaited = new Map<string, () => void>();
  let serving: { readonly proxy: CallProxy; readonly remote: GrpcRemote } | undefined;

  function verdict(): readonly string[] {
    const excuseOf = ({ duty, text }: Violation): Excuse | undefined =>
      excuses.find((one) => one.duty === duty && one.text.test(text));
    const all = oracle.violations.filter((one) => !isLongPath(one));
    const used = new Set(all.map(excuseOf));
    return [
      ...all.filter((one) => excuseOf(one) === undefined).map(({ duty, text }) => `${duty} ${text}`),
      ...oracle.remains().map((remains) => `the driver must believe that ${remains}`),
      ...excuses
        .filter((one) => !used.has(one))
        .map(({ duty, because }) => `not needed: ${duty}, ${because}`),
      ...(oracle.calls === 0 ? [`no call of ${driver} was seen`] : []),
    ];
  }

  return {
    front,
    behind,
    oracle,
    verdict,
    async open() {
      // A new one each time: the old one may be pausing before it dials again.
      const remote = createGrpcRemote();
      const proxy = await startProxy({
        listen: front,
        driver: behind,
        remote: remote.call,
        clock: CLOCK,
        deadlineMs: DRIVER_MS,
        onArrival(call) {
          const ended = oracle.begin(call);
          awaited.get(call.method)?.();
          return ended;
        },
      });
      serving = { proxy, remote };
    },
    async close() {
      await serving?.proxy.close();
      serving?.remote.close();
      serving = undefined;
      oracle.forgetOpenCalls();
    },
    callersAreGone: () => oracle.forgetOpenCalls(),
    arrival: (method) => new Promise((resolve) => void awaited.set(method, resolve)),
    excuse: (excuse) => void excuses.push(excuse),
  };
}
