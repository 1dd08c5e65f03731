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
import { synchronise } from './file/file-synchronise.ts';
import { measureUsage } from './file/file-usage.ts';
import { findPlaceHolders } from './holder/place-holders.ts';
import { findHolders } from './path/holders.ts';
import { isDeviceChangeable, proveBlank } from './device/blank-device.ts';
import { ownerOfQuestion, writeIscsiRecord } from './device/iscsi-record.ts';
import { readIscsiSessions } from './device/iscsi-sysfs.ts';
import {
  deviceNodeOf,
  findDeviceByNode,
  findHeldPaths,
  findLoopsOf,
  identifyDisk,
} from './device/path-device.ts';
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

function dispatch(call: PlainCall, sign: (seen: number) => void): Result<unknown> {
  switch (call.kind) {
    case 'inspect':
      return inspect(call.args.path);
    case 'inspectWay':
      return inspectWay(call.args.path);
    case 'makeDirectory':
      return makeDirectory(call.args.path, call.args.mode, call.args.use);
    case 'removeEmptyDirectory':
      return removeEmptyDirectory(call.args.path);
    case 'removeTree':
      return removeTree(call.args.path);
    case 'listDirectory':
      return listDirectory(call.args.path, call.args.entriesMax);
    case 'identifyDirectory':
      return identifyDirectory(call.args.path);
    case 'readDirectoryFiles':
      return readDirectoryFiles(call.args.path, call.args, call.args.stampAgeMs);
    case 'readFile':
      return readFile(call.args.path, call.args.bytesMax);
    case 'writeFile':
      return writeFile(call.args.path, call.args.content, call.args.options);
    case 'overwriteFile':
      return overwriteFile(call.args);
    case 'synchronise':
      return synchronise(call.args.path);
    case 'removeFile':
      return removeFile(call.args.path);
    case 'rename':
      return rename(call.args.from, call.args.to);
    case 'makeLink':
      return makeLink(call.args.path, call.args.text);
    case 'readLink':
      return readLink(call.args.path);
    case 'mountIdOf':
      return mountIdOfPath(call.args.path);
    case 'mountPlaceOf':
      return mountPlaceOf(call.args.path);
    case 'lookUpMount':
      return lookUpMount(call.args.path);
    case 'bindPart':
      return bindPart(call.args);
    case 'probeFileSystem':
      return probeFileSystem(call.args.path);
    case 'measureUsage':
      return measureUsage(call.args);
    case 'findHolders':
      return findHolders(call.args.target);
    case 'findPlaceHolders':
      return findPlaceHolders(call.args);
    case 'changeOwnershipPart':
      return changeOwnershipPart(call.args, sign);
    default:
      return dispatchOfDevice(call);
  }
}

type DeviceCall = Extract<
  PlainCall,
  {
    readonly kind:
      | 'deviceNodeOf'
      | 'identifyDisk'
      | 'findLoopsOf'
      | 'findHeldPaths'
      | 'proveBlank'
      | 'isDeviceChangeable'
      | 'scanForDeviceUsers'
      | 'findDeviceByNode'
      | 'readIscsiSessions'
      | 'writeIscsiRecord'
      | 'ownerOfQuestion';
  }
>;

function dispatchOfDevice(call: DeviceCall): Result<unknown> {
  switch (call.kind) {
    case 'deviceNodeOf':
      return deviceNodeOf(call.args.path);
    case 'identifyDisk':
      return identifyDisk(call.args.path);
    case 'findLoopsOf':
      return findLoopsOf(call.args.path, call.args.mark);
    case 'findHeldPaths':
      return findHeldPaths(call.args.within);
    case 'proveBlank':
      return proveBlank(call.args.path);
    case 'isDeviceChangeable':
      return isDeviceChangeable(call.args.path);
    case 'scanForDeviceUsers':
      return scanForDeviceUsers(call.args.device);
    case 'findDeviceByNode':
      return findDeviceByNode(call.args);
    case 'readIscsiSessions':
      return readIscsiSessions();
    case 'writeIscsiRecord':
      return writeIscsiRecord(call.args);
    case 'ownerOfQuestion':
      return ownerOfQuestion(call.args);
  }
}
