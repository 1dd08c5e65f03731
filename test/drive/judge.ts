/** The oracle over a recording that is over. */
import { CallOracle } from '../../agent/drive/oracle/oracle.ts';
import type { OracleOptions, Violation } from '../../agent/drive/oracle/oracle-context.ts';
import type { EndedCall } from '../../agent/drive/oracle/oracle-history.ts';
import type { RecordedCall } from '../../agent/drive/oracle/recorded-call.ts';

/** All of it at once, in the order of its clock. */
export function judge(calls: readonly RecordedCall[], options: OracleOptions = {}): readonly Violation[] {
  const oracle = new CallOracle(options);
  const events = calls.flatMap((call) => {
    let end: ((ended: EndedCall) => void) | undefined;
    const begin = (): void => {
      end = oracle.begin(call);
    };
    const finish = (): void => end?.(call);
    if (call.startMs < call.endMs) {
      // Two calls that touch do not overlap: at one time the ends come first.
      return [
        { atMs: call.startMs, order: 1, happen: begin },
        { atMs: call.endMs, order: 0, happen: finish },
      ];
    }
    const both = (): void => {
      begin();
      finish();
    };
    return [{ atMs: call.startMs, order: 1, happen: both }];
  });
  events.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
  for (const { happen } of events) happen();
  return oracle.violations;
}
