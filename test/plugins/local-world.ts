/** A machine in memory with the local kinds of volumes of one pod on it. */
import { type AbsolutePath, below } from '../../mount/host.ts';
import { createMounter } from '../../mount/mounter.ts';
import { createLayout, type Layout } from '../../plugins/layout/layout.ts';
import {
  NO_SECRETS,
  type PublicationCall,
  type VolumeFiles,
  type VolumePlugin,
} from '../../plugins/plugin.ts';
import { CONTENT_PLUGIN } from '../../plugins/pod/pod-traits.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import {
  type ContentVolumeSpec,
  type EmptyDirVolumeSpec,
  parsePodUid,
  podVolumeId,
  type PodUid,
  publicationKey,
  type VolumeSpec,
} from '../../plugins/volume.ts';
import type { PluginWorld } from '../contract/plugin.ts';
import { createMemoryHost, type MemoryHost } from './memory-host.ts';

export const ROOT = '/var/lib/mooring' as AbsolutePath;
export const POD = parsePodUid('0b4f8c1e-2222-4333-8444-55556666aaaa') as PodUid;
export const layout: Layout = createLayout(ROOT);
export const POD_DIRECTORY = layout.podDirectory(POD);

export type Files = Readonly<Record<string, string | { readonly text: string; readonly mode: number }>>;

export function filesOf(files: Files): VolumeFiles {
  const encode = (text: string) => new TextEncoder().encode(text);
  const entries = Object.entries(files).map(
    ([path, file]) =>
      [
        path,
        typeof file === 'string'
          ? { content: encode(file), mode: 0o644 }
          : { content: encode(file.text), mode: file.mode },
      ] as const,
  );
  return new Sensitive(new Map(entries));
}

export function callOf(spec: VolumeSpec, files?: Files): PublicationCall {
  const specName = 'name' in spec ? spec.name : 'orphan';
  return {
    spec,
    mount: undefined,
    facts: {
      needs: { attach: false, stage: false, expand: false },
      publishContext: undefined,
      stagedMount: undefined,
    },
    secrets: NO_SECRETS,
    stillWanted: () => true,
    step: () => {},
    progress: () => {},
    fsGroup: undefined,
    force: false,
    refresh: false,
    tokens: undefined,
    publication: {
      key: publicationKey(POD, specName),
      pod: { uid: POD, name: 'web', namespace: 'default', serviceAccount: 'default' },
      specName,
      readOnly: false,
      origin: 'web.yaml',
    },
    files: files === undefined ? undefined : filesOf(files),
  };
}

export function emptyDir(medium: 'disk' | 'memory', sizeLimitBytes = 0): VolumeSpec {
  return {
    kind: 'empty-dir',
    id: podVolumeId('kubernetes.io/empty-dir', POD, 'cache'),
    pod: POD,
    name: 'cache',
    medium,
    sizeLimitBytes,
  };
}

export function hugePages(): VolumeSpec {
  return {
    ...(emptyDir('memory', 4 << 20) as EmptyDirVolumeSpec),
    medium: 'huge-pages',
    hugePageBytes: 2 << 20,
  };
}

export function content(kind: ContentVolumeSpec['kind']): VolumeSpec {
  return { kind, id: podVolumeId(CONTENT_PLUGIN[kind], POD, 'settings'), pod: POD, name: 'settings' };
}

/** An empty host with `<root>/pods` on it, as the agent finds or makes it at start. */
export function freshHost(): MemoryHost {
  const host = createMemoryHost();
  host.plant(`${ROOT}/pods`, { kind: 'directory', mode: 0o750 });
  host.plant(`${ROOT}/plugins`, { kind: 'directory', mode: 0o750 });
  return host;
}

export function mounterOf(host: MemoryHost) {
  return createMounter(host, ROOT);
}

export interface LocalWorld extends PluginWorld {
  readonly host: MemoryHost;
  readonly target: AbsolutePath;
}

export function worldOf(
  call: PublicationCall,
  create: (host: MemoryHost) => VolumePlugin,
  see: (host: MemoryHost, target: AbsolutePath) => unknown,
  host: MemoryHost = freshHost(),
): LocalWorld {
  const target = layout.target(call.spec, call.publication);
  return {
    host,
    target,
    call,
    plugin: () => create(host),
    describe: () => host.describe(below('/' as AbsolutePath, 'var')),
    seen: () => see(host, target),
    depth: () => host.depthAt(target),
    effects: host.effects,
    calls: host.calls,
    crashAt: host.crashAt,
    failAt: host.failAt,
  };
}

export async function inodeOf(host: MemoryHost, path: AbsolutePath): Promise<number> {
  const facts = await host.inspect(path);
  return facts.ok ? facts.value.inode : 0;
}
