/** One call between an orchestrator and a driver as it was seen on the wire, fit to be kept: without secrets. */
import {
  ControllerService,
  GroupControllerService,
  IdentityService,
  NodeService,
  type VolumeCapability,
  type VolumeUsage,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { TEXT_LENGTH_MAX, withoutSecretValues } from '../../../plugins/secret/secret-forms.ts';

type StringMap = Readonly<Record<string, string>>;

/** The fields of all CSI requests that a judge may ask for; a request has those of its own message. */
export interface RequestFields {
  readonly volumeId?: string;
  readonly nodeId?: string;
  readonly stagingTargetPath?: string;
  readonly targetPath?: string;
  readonly volumePath?: string;
  readonly volumePublishPath?: string;
  readonly volumeCapability?: VolumeCapability | undefined;
  readonly volumeContext?: StringMap;
  readonly publishContext?: StringMap;
  readonly readonly?: boolean;
  /** Keys only: every value is `[redacted]`. */
  readonly secrets?: StringMap;
}

/** The fields of replies that a judge may ask for. */
export interface ReplyFields {
  readonly name?: string;
  readonly nodeId?: string;
  readonly ready?: boolean | undefined;
  readonly publishContext?: StringMap;
  readonly usage?: readonly VolumeUsage[];
  readonly capabilities?: readonly {
    readonly type?:
      | { readonly $case: string; readonly value: { readonly type: number } | undefined }
      | undefined;
  }[];
}

export interface RecordedCall {
  /** As people know it: `NodeStageVolume`. */
  readonly method: string;
  readonly request: RequestFields;
  /** Bytes of fields that CSI 1.13 does not have: an extension, or a mistake. */
  readonly unknownBytes: number;
  readonly startMs: number;
  readonly endMs: number;
  /** What the orchestrator was told; a canonical gRPC code, or any other number. */
  readonly code: number;
  /** The message of the answer, with every secret of the request taken out. */
  readonly message: string;
  /** Undefined unless the code is 0. */
  readonly reply: ReplyFields | undefined;
  /** The driver's answer held a secret of the request. */
  readonly secretInMessage: boolean;
  /** What the proxy did to it; undefined when it went straight through. */
  readonly injected: string | undefined;
  /** False when the driver never saw the call. */
  readonly reachedDriver: boolean;
}

interface WireMethod {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly requestSerialize: (request: never) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => unknown;
  readonly responseDeserialize: (bytes: Buffer) => unknown;
}

/** The unary methods of one service, by the name the generated definition gives them. */
export type WireService = ReadonlyMap<string, WireMethod>;

/** Every CSI service with unary methods. */
export const WIRE_SERVICES: readonly WireService[] = [
  IdentityService,
  ControllerService,
  GroupControllerService,
  NodeService,
].map((definition) => {
  const methods = Object.entries(definition as Readonly<Record<string, WireMethod>>);
  return new Map(methods.filter(([, one]) => !one.requestStream && !one.responseStream));
});

/** What is kept of a request, and its secret values, which are not. Bytes that do not decode are an empty request. */
export function readRequest(
  method: WireMethod,
  bytes: Buffer,
): { readonly fields: RequestFields; readonly unknownBytes: number; readonly secrets: readonly string[] } {
  const decoded = attempt(() => method.requestDeserialize(bytes));
  if (decoded === undefined) return { fields: {}, unknownBytes: bytes.length, secrets: [] };
  const known = method.requestSerialize(decoded as never).length;
  const { secrets = {} } = decoded as RequestFields;
  return {
    fields: redactedRequest(decoded as RequestFields),
    unknownBytes: Math.max(0, bytes.length - known),
    secrets: Object.values(secrets),
  };
}

/** Undefined for bytes that do not decode. */
export function readReply(method: WireMethod, bytes: Buffer): ReplyFields | undefined {
  return attempt(() => method.responseDeserialize(bytes) as ReplyFields);
}

const REDACTED = '[redacted]';

/**
 * By field: every value of `secrets` (option csi_secret of the specification: each field of that name and no other) and
 * the mount flags, which "may contain sensitive information". Keys and their number stay.
 */
export function redactedRequest(request: RequestFields): RequestFields {
  const { secrets, volumeCapability } = request;
  const mount =
    volumeCapability?.accessType?.$case === 'mount' ? volumeCapability.accessType.value : undefined;
  return {
    ...request,
    ...(secrets === undefined
      ? {}
      : { secrets: Object.fromEntries(Object.keys(secrets).map((key) => [key, REDACTED])) }),
    ...(mount === undefined || volumeCapability === undefined
      ? {}
      : {
          volumeCapability: {
            ...volumeCapability,
            accessType: {
              $case: 'mount' as const,
              value: { ...mount, mountFlags: mount.mountFlags.map(() => REDACTED) },
            },
          },
        }),
  };
}

/** The message without the secrets, and whether it held one, in any form that the agent itself looks for. */
export function withoutSecrets(
  message: string,
  secrets: readonly string[],
): { readonly message: string; readonly found: boolean } {
  const said = message.slice(0, TEXT_LENGTH_MAX);
  const text = withoutSecretValues(said, secrets);
  return { message: text, found: text !== said };
}

/** Decoders throw for bytes that are no message. */
function attempt<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
