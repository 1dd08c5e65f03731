/** What a node has asked of the API server, by its audit log: verb and resource, and how often. */
import { readFileSync, statSync } from 'node:fs';

export type RequestCount = Readonly<Record<string, number>>;

interface AuditLine {
  readonly stage: string;
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string };
}

/** Watches count when they begin, all else when it is answered. */
export function countRequests(auditLog: string, nodeName: string, sinceBytes: number): RequestCount {
  const counts = new Map<string, number>();
  for (const line of readFileSync(auditLog).subarray(sinceBytes).toString().split('\n')) {
    if (!line.includes(`"system:node:${nodeName}"`) || !line.endsWith('}')) continue;
    const { stage, verb, user, objectRef } = JSON.parse(line) as AuditLine;
    if (user.username !== `system:node:${nodeName}`) continue;
    if (stage !== (verb === 'watch' ? 'ResponseStarted' : 'ResponseComplete')) continue;
    const { resource = '?', subresource } = objectRef ?? {};
    const key = `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return Object.fromEntries(counts);
}

export function auditBytes(auditLog: string): number {
  return statSync(auditLog).size;
}
