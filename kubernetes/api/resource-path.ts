/** Paths of the resources that a node reads, and of the one that it makes. Names are escaped: others wrote them. */
import type { NamedReference } from '../objects/objects.ts';

/** The part of a resource that is followed. */
export interface ResourceSelection {
  /** `/api/v1/pods`. */
  readonly path: string;
  /** `spec.nodeName=node-1`; empty: all of them. */
  readonly fieldSelector: string;
  /** kind and apiVersion, which the server leaves out in lists. */
  readonly kind: string;
  readonly apiVersion: string;
}

/** The selector as a query has it. */
export function selected({ fieldSelector }: ResourceSelection): Record<string, string> {
  return fieldSelector === '' ? {} : { fieldSelector };
}

/** What changes of a selection after a version, with bookmarks; the server ends it after so many seconds. */
export function watchPath(selection: ResourceSelection, version: string, seconds: number): string {
  const query = new URLSearchParams({
    ...selected(selection),
    watch: '1',
    allowWatchBookmarks: 'true',
    resourceVersion: version,
    timeoutSeconds: `${seconds}`,
  });
  return `${selection.path}?${query}`;
}

const CORE = '/api/v1';
const STORAGE = '/apis/storage.k8s.io/v1';

export function podsOfNode(nodeName: string): ResourceSelection {
  return { path: `${CORE}/pods`, fieldSelector: `spec.nodeName=${nodeName}`, kind: 'Pod', apiVersion: 'v1' };
}

export function oneNode(nodeName: string): ResourceSelection {
  return {
    path: `${CORE}/nodes`,
    fieldSelector: `metadata.name=${nodeName}`,
    kind: 'Node',
    apiVersion: 'v1',
  };
}

export function allCsiDrivers(): ResourceSelection {
  return {
    path: `${STORAGE}/csidrivers`,
    fieldSelector: '',
    kind: 'CSIDriver',
    apiVersion: 'storage.k8s.io/v1',
  };
}

/** One Secret or ConfigMap, as a node may watch it. */
export function oneContent(
  kind: 'Secret' | 'ConfigMap',
  { namespace, name }: NamedReference,
): ResourceSelection {
  const resource = kind === 'Secret' ? 'secrets' : 'configmaps';
  return {
    path: `${CORE}/namespaces/${encodeURIComponent(namespace)}/${resource}`,
    fieldSelector: `metadata.name=${name}`,
    kind,
    apiVersion: 'v1',
  };
}

export function claimPath({ namespace, name }: NamedReference): string {
  const [inNamespace, called] = [encodeURIComponent(namespace), encodeURIComponent(name)];
  return `${CORE}/namespaces/${inNamespace}/persistentvolumeclaims/${called}`;
}

export function claimStatusPath(reference: NamedReference): string {
  return `${claimPath(reference)}/status`;
}

export function volumePath(name: string): string {
  return `${CORE}/persistentvolumes/${encodeURIComponent(name)}`;
}

/** By its name alone: a node may get it, and watch it where an administrator has added that right. */
export function oneAttachment(name: string): ResourceSelection {
  return {
    path: `${STORAGE}/volumeattachments`,
    fieldSelector: `metadata.name=${name}`,
    kind: 'VolumeAttachment',
    apiVersion: 'storage.k8s.io/v1',
  };
}

export function attachmentPath(name: string): string {
  return `${STORAGE}/volumeattachments/${encodeURIComponent(name)}`;
}

/** The collection of the objects that say which drivers a node has. */
export function csiNodesPath(): string {
  return `${STORAGE}/csinodes`;
}

export function csiNodePath(nodeName: string): string {
  return `${csiNodesPath()}/${encodeURIComponent(nodeName)}`;
}

export function nodePath(name: string): string {
  return `${CORE}/nodes/${encodeURIComponent(name)}`;
}

export function nodeStatusPath(name: string): string {
  return `${nodePath(name)}/status`;
}

/** Where tokens of a service account are asked for. */
export function tokenPath({ namespace, name }: NamedReference): string {
  const [inNamespace, called] = [encodeURIComponent(namespace), encodeURIComponent(name)];
  return `${CORE}/namespaces/${inNamespace}/serviceaccounts/${called}/token`;
}

/** The collection of the events about the objects of a namespace. */
export function eventsPath(namespace: string): string {
  return `${CORE}/namespaces/${encodeURIComponent(namespace)}/events`;
}

export function eventPath({ namespace, name }: NamedReference): string {
  return `${eventsPath(namespace)}/${encodeURIComponent(name)}`;
}
