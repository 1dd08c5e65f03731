/** A driver (and its registrar) that answers every method of every service as one function says. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ControllerService, IdentityService, NodeService } from '../../../plugins/csi/wire/generated/csi.ts';
import { RegistrationService } from '../../../plugins/csi/wire/generated/pluginregistration.ts';
import type { GrpcServer } from '../../../plugins/csi/wire/grpc-service.ts';
import { serveGrpc } from '../../../plugins/csi/wire/grpc.ts';
import { methodName } from '../../../plugins/csi/wire/status.ts';

/** As people know the method: `NodeStageVolume`. */
export type Answer = (method: string, request: { readonly volumeId?: string }) => Promise<unknown> | unknown;

interface WireMethod {
  readonly path: string;
  readonly requestDeserialize: (bytes: Buffer) => object;
}

export interface DutyMethod {
  /** As people know it. */
  readonly name: string;
  /** As the generated code has it: `NodeService.nodeStageVolume`. */
  readonly source: string;
  /** A request of which no field is set. */
  readonly empty: object;
}

const SERVICES = { IdentityService, ControllerService, NodeService, RegistrationService };

export const ALL_METHODS: readonly DutyMethod[] = Object.entries(SERVICES).flatMap(([service, definition]) =>
  Object.entries(definition as Readonly<Record<string, WireMethod>>).map(
    ([key, { path, requestDeserialize }]) => ({
      name: methodName(path),
      source: `${service}.${key}`,
      empty: requestDeserialize(Buffer.alloc(0)),
    }),
  ),
);

/** Those that the product calls: read from its sources, so that a new one is noticed. */
export function calledMethods(): readonly DutyMethod[] {
  const folder = fileURLToPath(new URL('../../../plugins/csi/', import.meta.url));
  const text = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('generated'))
    .map((name) => readFileSync(`${folder}${name}`, 'utf8'))
    .join('\n');
  return ALL_METHODS.filter(({ source }) => new RegExp(`\\b${source.replace('.', '\\.')}\\b`).test(text));
}

export async function serveAll(socket: string, answer: Answer): Promise<GrpcServer> {
  mkdirSync(dirname(socket), { recursive: true, mode: 0o750 });
  const services = Object.values(SERVICES).map((definition) => ({
    definition,
    implementation: Object.fromEntries(
      Object.entries(definition as Readonly<Record<string, WireMethod>>).map(([key, { path }]) => [
        key,
        async (request: { readonly volumeId?: string }) => answer(methodName(path), request),
      ]),
    ) as never,
  }));
  return serveGrpc(socket, services);
}
