/** Drivers that come and go as the test says, as the registry tells of them. */
import type { DriverChange, DriverInstance, DriverRegistry } from '../../../plugins/csi/driver/driver.ts';
import type { AnnouncedDriver } from '../../../agent/attachment/driver-announcement.ts';

export interface TestDrivers extends Pick<DriverRegistry, 'list' | 'onChange'> {
  register(driver: AnnouncedDriver): void;
  remove(name: string): void;
}

export function createTestDrivers(): TestDrivers {
  const drivers = new Map<string, AnnouncedDriver>();
  const listeners = new Set<(change: DriverChange) => void>();
  const tell = (kind: DriverChange['kind'], driver: string): void => {
    for (const listener of listeners) listener({ kind, driver });
  };
  return {
    list: () => [...drivers.values()] as DriverInstance[],
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    register(driver) {
      drivers.set(driver.name, driver);
      tell('registered', driver.name);
    },
    remove(name) {
      drivers.delete(name);
      tell('gone', name);
    },
  };
}
