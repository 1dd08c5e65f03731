/** The driver registers as it would with the kubelet: its registration socket is found, asked, and told the verdict. */
import { join } from 'node:path';
import { type AbsolutePath, parseAbsolutePath } from '../../../mount/host.ts';
import { RegistrationService } from '../../../plugins/csi/wire/generated/pluginregistration.ts';
import { highestVersion } from '../../../plugins/csi/driver/registration.ts';
import { methodName } from '../../../plugins/csi/wire/status.ts';
import { isDriverName } from '../../../plugins/volume.ts';
import { answerText } from './driver-client.ts';
import type { DriverClient } from './driver-client.ts';
import { kindOf, namesIn } from './machine.ts';
import { insteadOfSocket, type Look, missing, type Patience, waitWithWords } from './patience.ts';

import type { Notes } from '../oracle/verdict.ts';

const NAMES_MAX = 5;

/** The socket itself, or the one socket that appears in the directory; a sentence when none comes in time. */
export async function findRegistrationSocket(
  path: AbsolutePath,
  patience: Patience,
): Promise<Look<AbsolutePath>> {
  const where = (await kindOf(path)) === 'directory' ? 'in' : 'at';
  return waitWithWords(`a registration socket ${where} ${path}`, () => lookForSocket(path), patience);
}

async function lookForSocket(path: AbsolutePath): Promise<Look<AbsolutePath>> {
  const kind = await kindOf(path);
  if (kind === 'socket') return { kind: 'there', value: path };
  if (kind !== 'directory') return missing(insteadOfSocket(kind));
  const names = (await namesIn(path)).filter((name) => !name.startsWith('.')).sort();
  for (const name of names) {
    const socket = parseAbsolutePath(join(path, name));
    if (socket !== undefined && (await kindOf(socket)) === 'socket') return { kind: 'there', value: socket };
  }
  if (names.length === 0) return missing('it is empty');
  const more = names.length > NAMES_MAX ? ' …' : '';
  return missing(`of ${names.slice(0, NAMES_MAX).join(', ')}${more} none is a socket`);
}

/** What GetInfo says of the CSI socket; undefined, with the reason noted, when it cannot be used. */
export async function announcedEndpoint(
  client: DriverClient,
  socket: AbsolutePath,
  notes: Notes,
): Promise<{ readonly name: string; readonly endpoint: AbsolutePath } | undefined> {
  const info = await client.call(RegistrationService.getInfo, {});
  if (!notes.expect(info.ok, `GetInfo: ${answerText(info)}`) || !info.ok) return undefined;
  const { type, name, endpoint, supportedVersions } = info.reply;
  notes.expect(type === 'CSIPlugin', `GetInfo: type is "${type}", and CSIPlugin is what a CSI driver is`);
  notes.expect(isDriverName(name), `GetInfo: "${name}" is no driver name`);
  const version = highestVersion(supportedVersions);
  notes.expect(version !== undefined, `GetInfo: no version 0 or 1 among [${supportedVersions.join(', ')}]`);
  const path = endpoint === '' ? socket : parseAbsolutePath(endpoint);
  notes.expect(path !== undefined, `GetInfo: endpoint "${endpoint}" must be a plain absolute path`);
  return path === undefined ? undefined : { name, endpoint: path };
}

/** Tells the registrar that it was taken; it must hear it. */
export async function confirmRegistration(
  client: DriverClient,
  notes: Notes,
  names: { readonly announced: string; readonly own: string },
): Promise<void> {
  const { announced, own } = names;
  notes.expect(announced === own, `registered as "${announced}", but GetPluginInfo says "${own}"`);
  const method = RegistrationService.notifyRegistrationStatus;
  const told = await client.call(method, { pluginRegistered: announced === own, error: '' });
  notes.expect(told.ok, `${methodName(method.path)}: ${answerText(told)}`);
}
