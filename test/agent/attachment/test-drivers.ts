/** Drivers that come and go as the test says, as the registry tells of them. */
import { ok } from '../../../mount/failure.ts';
import type { DriverChange, DriverInstance } from '../../../plugins/csi/driver/driver.ts';
import type { AnnouncingDrivers } from '../../../agent/attachment/standing-watch.ts';
import type { AnnouncedDriver } from '../../../agent/attachment/driver-announcement.ts';

export interface TestDrivers extends AnnouncingDrivers {
  register(driver: AnnouncedDriver): void;
  remove(name: string): void;
  /** Its socket is another one: it is not given out until it has said what it is, and nothing is told. */
  outdate(name: string): void;
  /** What the driver says of its limit from now on, without registering anew. */
  limit(name: string, volumesMax: number): void;
  /** How often it was asked for it. */
  asked(): number;
}

export function createTestDrivers(): TestDrivers {
  const drivers = new Map<string, AnnouncedDriver>();
  const listeners = new Set<(change: DriverChange) => void>();
  const tell = (kind: DriverChange['kind'], driver: string): void => {
    for (const listener of listeners) listener({ kind, driver });
  };
  const limits = new Map<string, number>();
  let asked = 0;
  return {
    async askVolumesMax(name) {
      asked += 1;
      return ok(limits.get(name) ?? drivers.get(name)?.volumesMax ?? 0);
    },
    limit: (name, volumesMax) => limits.set(name, volumesMax),
    asked: () => asked,
    list: () => [...drivers.values()] as DriverInstance[],
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    register(driver) {
      drivers.set(driver.name, driver);
      tell('registered', driver.name);
    },
    outdate: (name) => void drivers.delete(name),
    remove(name) {
      drivers.delete(name);
      tell('gone', name);
    },
  };
}
