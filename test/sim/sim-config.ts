/** The agent's configuration for a seed, through its own parser. */
import type { Config } from '../../agent/config/config.ts';
import { parseConfig } from '../../agent/config/parse-config.ts';
import { LATE_EFFECT_MS } from './late-plan.ts';
import { NODE_NAME } from './manifests.ts';
import { MANIFESTS, ROOT } from './sim-paths.ts';
import type { Plan } from './swarm.ts';

export function configOf(plan: Plan): Config {
  const silent = plan.drivers.filter(({ registers }) => !registers);
  const reading = parseConfig(
    {
      root: ROOT,
      manifests: MANIFESTS,
      csi_deadline_ms: plan.csiDeadlineMs,
      late_effect_ms: LATE_EFFECT_MS,
      operations_per_driver_max: plan.operationsPerDriverMax,
      vanished_hold_ms: plan.absence.holdMs,
      statistics_interval_ms: plan.features.statisticsMs,
      republish_interval_ms: plan.features.republishMs,
      selinux: 'off',
      drivers: Object.fromEntries(
        plan.drivers.map(({ name, parallel }) => [name, { parallel_publish: parallel }]),
      ),
      static_drivers: silent.map(({ name }) => ({ socket: `${ROOT}/plugins/${name}/csi.sock` })),
    },
    {},
    NODE_NAME,
  );
  if (!reading.ok) throw new Error(`broken invariant: ${JSON.stringify(reading.problems)}`);
  return reading.value;
}
