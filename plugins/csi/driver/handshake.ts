/** The whole handshake with one registration socket, from what it announces to the verdict that it is told. */
import { type Failure, ok, type Result } from '../../../mount/failure.ts';
import type { AbsolutePath, Host } from '../../../mount/host.ts';
import type { SocketIdentity } from '../../../mount/remote-call.ts';
import type { DriverInstance } from './driver.ts';
import { notifyRegistrar, type Questioner, questionDriver, readAnnouncement } from './registration.ts';
import { findSocket, type FoundSocket, isPluginSocket, type TrustedLayout } from './socket-trust.ts';

/** The finished handshake with that life of the registration socket. */
export interface Announced {
  readonly life: string;
  readonly name: string;
  readonly endpoint: AbsolutePath;
}

export interface Admitted {
  readonly instance: DriverInstance;
  /** Which life of the endpoint's socket has answered. */
  readonly life: string;
  /** Undefined when only the driver was questioned. */
  readonly announced: Announced | undefined;
}

type Refused = { readonly ok: false; readonly failure: Failure };

export interface HandshakeParts {
  readonly host: Host;
  readonly layout: TrustedLayout;
  readonly questioner: Questioner;
}

/**
 * Asks registrar and driver, and tells the registrar what became of it. `onEndpoint` hears where the driver is as soon
 * as that is known, so that its socket is watched also when the driver does not answer.
 */
export async function shakeHands(
  { host, layout, questioner }: HandshakeParts,
  { identity: socket, life }: FoundSocket,
  onEndpoint: (path: AbsolutePath) => void,
): Promise<Result<Admitted>> {
  const announcement = await readAnnouncement(questioner, socket);
  // As in the kubelet, one that gave no answer is told nothing; one whose answer cannot be used is.
  if (!announcement.ok && announcement.failure.code !== 'driver-answer-invalid') return announcement;
  if (!announcement.ok) return tellRegistrar(questioner, socket, announcement);
  const { name, endpoint: path } = announcement.value;
  const placed = isPluginSocket(layout, path);
  if (!placed.ok) return tellRegistrar(questioner, socket, placed);
  onEndpoint(path);
  const endpoint = await findSocket(host, path, layout.root);
  if (!endpoint.ok) return tellRegistrar(questioner, socket, endpoint);
  const registrationSocket = socket.path;
  const about = { name, registrationSocket, life: endpoint.value.life };
  const instance = await questionDriver(questioner, endpoint.value.identity, about);
  if (!instance.ok) return tellRegistrar(questioner, socket, instance);
  // First the registrar, then we: a verdict it never got would leave it waiting beside a driver in use (DR-14).
  const told = await notifyRegistrar(questioner, socket, undefined);
  if (!told.ok) return told;
  const announced = { life, name, endpoint: path };
  return ok({ instance: instance.value, life: endpoint.value.life, announced });
}

/** It ends itself and comes back with a new socket; so it is not told of a driver that only needs more time. */
async function tellRegistrar(
  questioner: Questioner,
  socket: SocketIdentity,
  refused: Refused,
): Promise<Refused> {
  if (refused.failure.code !== 'driver-busy') await notifyRegistrar(questioner, socket, refused.failure);
  return refused;
}
