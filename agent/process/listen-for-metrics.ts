/** Metrics over TCP, where they are configured. */
import type { Clock } from '../../mount/host.ts';
import type { Log } from '../../mount/process/log.ts';
import { createMetricsServer, type MetricsServer } from '../../mount/process/metrics-server.ts';
import type { Config } from '../config/config.ts';

/** A port that is taken costs the metrics, never the volumes. */
export async function listenForMetrics(
  { metricsListen }: Config,
  metrics: () => string,
  clock: Clock,
  log: Log,
): Promise<MetricsServer | undefined> {
  if (metricsListen === undefined) return undefined;
  const server = createMetricsServer({ listen: metricsListen, metrics, clock, log });
  const listening = await server.listen();
  if (listening.ok) return server;
  log.error('metrics not served over TCP', { message: listening.failure.message });
  return undefined;
}
