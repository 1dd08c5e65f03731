/** The programs of the brokers: set by build.ts; a run from source has none, and starts itself again. */
import type { BrokerPrograms } from '../../mount/broker/broker-protocol.ts';

declare const MOORING_BROKER_PROGRAMS: BrokerPrograms | undefined;

export const BROKER_PROGRAMS: BrokerPrograms | undefined =
  typeof MOORING_BROKER_PROGRAMS === 'object' ? MOORING_BROKER_PROGRAMS : undefined;
