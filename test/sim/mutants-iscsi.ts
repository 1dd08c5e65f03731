/** Planted bugs about volumes of iSCSI targets. */
import { done, ok } from '../../mount/failure.ts';
import { createMountTable } from '../../mount/mount-table.ts';
import { type Mutant, withHost } from './mutant.ts';
import { aboutIscsi } from './stories.ts';

export const ISCSI_MUTANTS: readonly Mutant[] = [
  {
    name: 'ends a session while another volume of its target is in use',
    caughtBy: ['in-use'],
    make: () => ({
      ...withHost((host) => ({
        readMountTable: async (about) => {
          const table = await host.readMountTable(about);
          return table.ok && about.endsWith('/iscsi') ? ok(createMountTable([])) : table;
        },
        findDeviceUsers: async () => ok([]),
      })),
      plan: aboutIscsi,
    }),
  },
  {
    name: 'forgets to log out',
    caughtBy: ['liveness'],
    make: () => ({ ...withHost(() => ({ logOutOfIscsi: async () => done })), plan: aboutIscsi }),
  },
  {
    name: 'takes the disk of another LUN',
    caughtBy: ['liveness'],
    make: () => ({
      ...withHost((host) => ({
        readIscsiSessions: async () => {
          const sessions = await host.readIscsiSessions();
          if (!sessions.ok) return sessions;
          const swapped = sessions.value.map((session) => ({
            ...session,
            disks: session.disks.map((disk) => ({ ...disk, lun: disk.lun === 0 ? 1 : 0 })),
          }));
          return ok(swapped);
        },
      })),
      plan: aboutIscsi,
    }),
  },
  {
    name: 'takes every session that it finds for its own',
    caughtBy: ['session'],
    make: () => ({
      ...withHost((host) => {
        const own = new Set<number>();
        return {
          /** So that each one is noted, as before a login of ours. */
          readIscsiSessions: async () => {
            const sessions = await host.readIscsiSessions();
            if (!sessions.ok) return sessions;
            return ok(sessions.value.filter(({ number }) => own.has(number)));
          },
          logInToIscsi: async (login) => {
            const made = await host.logInToIscsi(login);
            const sessions = await host.readIscsiSessions();
            if (sessions.ok) for (const { number } of sessions.value) own.add(number);
            return made.ok ? ok('made') : made;
          },
        };
      }),
      plan: aboutIscsi,
    }),
  },
];
