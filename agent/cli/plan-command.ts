/** `mooring plan`: what is shown, and with which exit code it ends. */
import { parseSpanMs } from '../../mount/text/duration.ts';
import type { Config, ConfigReading } from '../config/config.ts';
import { configurationComplaint } from '../config/config-complaint.ts';
import { EXIT_CODES } from '../config/exit-code.ts';
import type { PlanDocument } from '../plan/plan-document.ts';
import type { PlanOutcome } from '../plan/plan-outcome.ts';
import { planText } from './plan-text.ts';
import { json, type Screen } from './show.ts';

export interface PlanCommandOptions {
  readonly output: string;
  readonly timeout: string;
}

/** Settles with the exit code. `plan`: with the configuration, and how long drivers and servers are waited for. */
export async function planAndShow(
  reading: ConfigReading,
  { output, timeout }: PlanCommandOptions,
  screen: Screen,
  plan: (config: Config, patienceMs: number) => Promise<PlanOutcome>,
): Promise<number> {
  if (!reading.ok) {
    screen.complain(configurationComplaint(reading.problems));
    return EXIT_CODES.configuration;
  }
  const patienceMs = parseSpanMs(timeout);
  if (patienceMs === undefined) {
    screen.complain(`mooring: --timeout "${timeout}": expected a time such as 90s, 5m or 1h30m\n`);
    return EXIT_CODES.usage;
  }
  return showPlan(await plan(reading.value, patienceMs), output, screen);
}

/** The exit code. */
function showPlan(outcome: PlanOutcome, output: string, screen: Screen): number {
  if (outcome.kind === 'refused') {
    const { code, message, blocker } = outcome.failure;
    const by = blocker === undefined || message.includes(blocker) ? '' : ` (${blocker})`;
    screen.complain(`mooring: ${code}: ${message}${by}\n`);
    return outcome.exitCode;
  }
  const { document } = outcome;
  screen.write(output === 'json' ? json(document) : planText(document, screen.look()));
  return exitCodeOf(document);
}

/** The worst of it: what pods would lose comes first. */
function exitCodeOf({ disturbed, whole, refusal }: PlanDocument): number {
  if (disturbed > 0) return EXIT_CODES.disturbs;
  if (!whole) return EXIT_CODES.failure;
  return refusal === null ? EXIT_CODES.ok : EXIT_CODES.configuration;
}
