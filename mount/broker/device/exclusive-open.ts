/** The exclusive open of a block device: by it the kernel tells of users that no process shows. */
import { closeSync, constants, openSync } from 'node:fs';
import { nodeOf, type Scan, Unseen, USERS_MAX } from './device-scan.ts';
import { isIn } from './open-file-users.ts';
import { deviceNodeOf } from './path-device.ts';
import { tasks } from './task.ts';
import { nameOf } from '../path/holders.ts';
import { codeOfErrno, errnoOf } from '../../errno.ts';
import { type DeviceNumber, parseAbsolutePath } from '../../host.ts';

/** Closed again at once; read-only, so that nothing is written and no watcher of device nodes is told. */
export function tryExclusiveOpen(scan: Scan, device: DeviceNumber): void {
  const node = nodeOf(device);
  if (node === undefined) return;
  const path = parseAbsolutePath(node);
  const found = path === undefined ? undefined : deviceNodeOf(path);
  if (found === undefined || !found.ok || found.value?.device !== device) {
    throw new Unseen('path-missing', `${node} is not the node of device ${device}`);
  }
  try {
    closeSync(openSync(node, constants.O_RDONLY | constants.O_EXCL | constants.O_NONBLOCK));
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'EBUSY') addUnseenUsers(scan);
    else if (errno !== 'ENXIO' && errno !== 'ENODEV' && errno !== 'ENOENT' && errno !== 'ENOMEDIUM')
      throw new Unseen(codeOfErrno(errno), `${node} cannot be opened: ${errno}`);
  }
}

/**
 * The kernel says that it is used, and nobody was found: a mount in no namespace, with somebody in a directory of it.
 * Only a name for what is known already, so what cannot be looked at is passed over.
 */
function addUnseenUsers(scan: Scan): void {
  try {
    for (const task of tasks(scan)) {
      if (scan.users.size >= USERS_MAX) return;
      if (isIn(scan, task, 'cwd') || isIn(scan, task, 'root'))
        scan.users.add(`pid ${task.pid} (${nameOf(task.pid)})`);
    }
  } catch (error) {
    if (!(error instanceof Unseen)) throw error;
  }
  if (scan.users.size === 0)
    scan.users.add('the kernel: a mount that no process sees, or a device on top of it');
}
