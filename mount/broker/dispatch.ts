/** What a path broker does with one call. */
import { effectOfLost, type PathCall } from './broker-protocol.ts';
import { removeTree } from './file/file-tree.ts';
import { failErrno } from '../errno.ts';
import type { Result } from '../failure.ts';
import { identifyDirectory } from './file/file-identity.ts';
import { changeOwnershipPart } from './file/fs-group-part.ts';
import { inspect, inspectWay } from './file/path-facts.ts';
import { listDirectory, readDirectoryFiles } from './file/directory-reading.ts';
import { makeDirectory, removeEmptyDirectory } from './file/directory-effects.ts';
import { makeLink, readLink, removeFile, rename } from './file/file-effects.ts';
import { readFile } from './file/file-reading.ts';
import { writeFile } from './file/file-writing.ts';
import { overwriteFile } from './file/file-overwrite.ts';
import { findPlaceHolders } from './holder/place-holders.ts';
import { findHolders } from './path/holders.ts';
import { isDeviceFree, proveBlank } from './device/blank-device.ts';
import { deviceNodeOf, findDeviceByNode, findLoopsOf } from './device/path-device.ts';
import { scanForDeviceUsers } from './device/path-device-users.ts';
import { bindPart } from './part/part-bind.ts';
import { lookUpMount, mountIdOfPath, mountPlaceOf } from './path/mount-lookup.ts';
import { performTransition, type Transitions } from './perform-transition.ts';
import { probeFileSystem } from './path/path-probe.ts';

/**
 * Synchronous, and total over errno: an error that no step expected fails the call, not the broker. A long call says
 * by `sign` how many entries it has seen, as often as it likes.
 */
export function performPathCall(
  call: PathCall,
  sign: (seen: number) => void,
  transitions: Transitions,
): Result<unknown> {
  if (call.kind === 'transition') return performTransition(transitions, call.args, sign);
  try {
    return dispatch(call, sign);
  } catch (error) {
    return failErrno(error, call.kind, effectOfLost(call));
  }
}

type PlainCall = Exclude<PathCall, { readonly kind: 'transition' }>;

function dispatch({ kind, args }: PlainCall, sign: (seen: number) => void): Result<unknown> {
  switch (kind) {
    case 'inspect':
      return inspect(args.path);
    case 'inspectWay':
      return inspectWay(args.path);
    case 'makeDirectory':
      return makeDirectory(args.path, args.mode);
    case 'removeEmptyDirectory':
      return removeEmptyDirectory(args.path);
    case 'removeTree':
      return removeTree(args.path);
    case 'listDirectory':
      return listDirectory(args.path, args.entriesMax);
    case 'identifyDirectory':
      return identifyDirectory(args.path);
    case 'readDirectoryFiles':
      return readDirectoryFiles(args.path, args, args.stampAgeMs);
    case 'readFile':
      return readFile(args.path, args.bytesMax);
    case 'writeFile':
      return writeFile(args.path, args.content, args.options);
    case 'overwriteFile':
      return overwriteFile(args.path, args.offsetBytes, args.content);
    case 'removeFile':
      return removeFile(args.path);
    case 'rename':
      return rename(args.from, args.to);
    case 'makeLink':
      return makeLink(args.path, args.text);
    case 'readLink':
      return readLink(args.path);
    case 'mountIdOf':
      return mountIdOfPath(args.path);
    case 'mountPlaceOf':
      return mountPlaceOf(args.path);
    case 'lookUpMount':
      return lookUpMount(args.path);
    case 'bindPart':
      return bindPart(args);
    case 'probeFileSystem':
      return probeFileSystem(args.path);
    case 'findHolders':
      return findHolders(args.target);
    case 'findPlaceHolders':
      return findPlaceHolders(args);
    case 'deviceNodeOf':
      return deviceNodeOf(args.path);
    case 'findLoopsOf':
      return findLoopsOf(args.path);
    case 'proveBlank':
      return proveBlank(args.path);
    case 'isDeviceFree':
      return isDeviceFree(args.path);
    case 'scanForDeviceUsers':
      return scanForDeviceUsers(args.device);
    case 'findDeviceByNode':
      return findDeviceByNode(args);
    case 'changeOwnershipPart':
      return changeOwnershipPart(args, sign);
  }
}
