/** What the agent knows as one document: the base of `mooring status`, `explain` and the API. Pure; without secrets. */
import { controllerCapabilityNames, nodeCapabilityNames } from '../../plugins/csi/driver/capability-name.ts';
import type { DriverInstance, RefusedDriver } from '../../plugins/csi/driver/driver.ts';
import { driverOf } from '../../plugins/kinds/volume-questions.ts';
import type { Layout } from '../../plugins/layout/layout.ts';
import { BUILD } from '../config/version.ts';
import { healthOf } from './status-condition.ts';
import type { DriverStatus, StatusDocument } from './status-document.ts';
import type { StatusFacts } from './status-facts.ts';
import { podsOf, volumesOf } from './status-places.ts';
import { podStatuses } from './status-pod.ts';
import { type DocumentParts, StatusReasons } from './status-reason.ts';
import { sourcesOf } from './status-sources.ts';
import { summaryOf } from './status-summary.ts';
import { shown, shownOrNull } from './status-text.ts';
import { volumeStatus } from './status-volume.ts';

/** The document of one moment. `revision` names the state it shows (see docs/API.md). */
export function statusOf(facts: StatusFacts, layout: Layout, revision: string): StatusDocument {
  const reasons = new StatusReasons(facts);
  const parts: DocumentParts = { facts, layout, reasons };
  const pairs = volumesOf(facts);
  const pods = podStatuses(podsOf(facts, pairs), parts);
  const volumes = pairs.map((pair) => volumeStatus(pair, parts));
  return {
    apiVersion: 'mooring/v1',
    kind: 'Status',
    revision,
    agent: {
      node: facts.nodeName,
      ...BUILD,
      root: layout.root,
      startedAt: reasons.when(facts.startedMs),
      now: new Date(facts.wallMs).toISOString(),
      uptimeMs: Math.round(facts.nowMs - facts.startedMs),
      complete: facts.desired.complete,
    },
    summary: summaryOf(facts, pods, volumes),
    pods,
    volumes,
    strangers: volumes.filter(({ stranger }) => stranger).map(({ id }) => id),
    drivers: [...registeredDrivers(parts), ...facts.refusedDrivers.map(refusedDriver)],
    sources: sourcesOf(facts, reasons.when),
    unreadableRecords: facts.unreadableRecords.map(({ file, failure }) => ({
      file: shown(file),
      code: failure.code,
      message: shown(failure.message),
    })),
  };
}

function registeredDrivers({ facts, reasons }: DocumentParts): readonly DriverStatus[] {
  const volumes = countDrivers(facts);
  return facts.drivers.map((driver: DriverInstance) => ({
    name: driver.name,
    state: 'registered' as const,
    version: shown(driver.vendorVersion),
    nodeId: shown(driver.nodeId),
    socket: driver.endpoint.path,
    registeredAt: reasons.when(driver.registeredAtMs),
    capabilities: {
      node: nodeCapabilityNames(driver.nodeCapabilities),
      controller:
        driver.controllerCapabilities === undefined
          ? null
          : controllerCapabilityNames(driver.controllerCapabilities),
    },
    volumesMax: driver.volumesMax === 0 ? null : driver.volumesMax,
    volumes: volumes.get(driver.name) ?? 0,
    unanswered: facts.statistics.owedBy(driver.name),
    health: healthOf(facts.statistics.ofStorage(driver.name)),
    reason: null,
    code: null,
  }));
}

function refusedDriver({ socket, name, reason, code }: RefusedDriver): DriverStatus {
  return {
    name: shownOrNull(name),
    state: 'refused',
    version: null,
    nodeId: null,
    socket,
    registeredAt: null,
    capabilities: null,
    volumesMax: null,
    volumes: 0,
    unanswered: 0,
    health: null,
    reason: shown(reason),
    code: code ?? null,
  };
}

function countDrivers({ actual }: StatusFacts): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { spec } of actual.values()) {
    const driver = driverOf(spec);
    if (driver !== undefined) counts.set(driver, (counts.get(driver) ?? 0) + 1);
  }
  return counts;
}
