/** The machine as one who plans has it: everything can be looked at, and nothing of it is changed. */
import { done, fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, type Host, isBelow } from '../../mount/host.ts';
import type { RemoteCall, RemoteReply } from '../../mount/remote-call.ts';

/** Calls that tell of a driver and change nothing. */
const QUESTIONS: ReadonlySet<string> = new Set([
  '/pluginregistration.Registration/GetInfo',
  '/csi.v1.Identity/GetPluginInfo',
  '/csi.v1.Identity/GetPluginCapabilities',
  '/csi.v1.Identity/Probe',
  '/csi.v1.Node/NodeGetInfo',
  '/csi.v1.Node/NodeGetCapabilities',
  '/csi.v1.Controller/ControllerGetCapabilities',
]);
/** A registrar is told nothing: what it was told by whoever runs the node stays. */
const VERDICT = '/pluginregistration.Registration/NotifyRegistrationStatus';
const EMPTY = Buffer.alloc(0);

const REFUSED = fail({
  code: 'permission-denied',
  message: 'a plan changes nothing',
  effect: 'none',
});

/**
 * Guarantees: no file, mount, device or owner is changed, no driver is asked for anything but what it is. What would
 * be written below `own`, where an agent has its records, counts as written, and is written nowhere; a directory there
 * that is missing counts as empty, and `own` as a directory when it is not there yet.
 */
export function readOnlyHost<Machine extends Host>(host: Machine, own: AbsolutePath): Machine {
  const refused = async (): Promise<Result<never>> => REFUSED;
  const isOwn = (path: AbsolutePath): boolean => path === own || isBelow(path, own);
  const pretended = async (path: AbsolutePath): Promise<Result<void>> => (isOwn(path) ? done : REFUSED);
  const orEmpty = async <T>(
    path: AbsolutePath,
    read: Promise<Result<readonly T[]>>,
  ): Promise<Result<readonly T[]>> => {
    const answer = await read;
    return !answer.ok && answer.failure.code === 'path-missing' && isOwn(path) ? ok([]) : answer;
  };
  const changes = {
    async makeDirectory(path: AbsolutePath): Promise<Result<void>> {
      const facts = await host.inspect(path);
      return facts.ok && facts.value.kind === 'directory' ? done : pretended(path);
    },
    writeFile: pretended,
    overwriteFile: pretended,
    synchronise: pretended,
    removeFile: pretended,
    removeEmptyDirectory: refused,
    removeTree: refused,
    rename: refused,
    makeLink: refused,
    mount: refused,
    bindPart: refused,
    unmount: refused,
    holdDevice: refused,
    releaseDevice: refused,
    changeOwnership: refused,
    makeFileSystem: refused,
    checkFileSystem: refused,
    growFileSystem: refused,
    logInToIscsi: refused,
    scanIscsi: refused,
    logOutOfIscsi: refused,
    removeMultipath: refused,
    notify: async () => done,
  } satisfies Partial<Host>;
  const looks: Pick<Host, 'inspect' | 'listDirectory' | 'readDirectoryFiles' | 'perform' | 'call'> = {
    async inspect(path) {
      const facts = await host.inspect(path);
      const isMade = path === own && facts.ok && facts.value.kind === 'absent';
      return isMade ? ok({ ...facts.value, kind: 'directory' }) : facts;
    },
    listDirectory: (path, entriesMax) => orEmpty(path, host.listDirectory(path, entriesMax)),
    readDirectoryFiles: (path, reading) => orEmpty(path, host.readDirectoryFiles(path, reading)),
    perform: async (transition, args) =>
      transition.changesTheWorld ? REFUSED : host.perform(transition, args),
    call: async (call) => (QUESTIONS.has(call.method.path) ? host.call(call) : notAsked(call)),
  };
  const named: Partial<Record<PropertyKey, unknown>> = { ...changes, ...looks };
  return new Proxy(host, {
    get(target, key) {
      const own = named[key];
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function notAsked<Request, Reply>({ method }: RemoteCall<Request, Reply>): RemoteReply<Reply> {
  if (method.path === VERDICT) return { kind: 'ok', reply: method.responseDeserialize(EMPTY) };
  return { kind: 'broken', because: 'unreachable', message: 'a plan asks no driver for anything' };
}
