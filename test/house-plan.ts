/** The sources of the product as rooms and arrows: what the house test judges, and house.ts counts. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const FLOORS = ['mount', 'plugins', 'kubernetes', 'reconciler', 'agent'] as const;

export interface Source {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly string[];
}

export function sourcesBelow(folder: string): Source[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('generated/'))
    .map((name) => {
      const path = join(folder, name);
      const text = readFileSync(join(ROOT, path), 'utf8');
      const imports = [...text.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1] ?? '');
      return { path, text, imports };
    });
}

export const product = FLOORS.flatMap(sourcesBelow);
export const floorOf = (path: string): number => FLOORS.findIndex((floor) => path.startsWith(`${floor}/`));
export const resolved = (source: Source, name: string): string => normalize(join(dirname(source.path), name));

export const roomOf = (path: string): string => dirname(path);

/** The entry connects everything. */
export const inRooms = product.filter(({ path }) => path !== 'agent/main.ts');

/** The rooms that each room imports from. */
export function neighboursOfRooms(): ReadonlyMap<string, ReadonlySet<string>> {
  const neighbours = new Map<string, Set<string>>();
  for (const source of inRooms) {
    const from = roomOf(source.path);
    const to = source.imports
      .filter((name) => name.startsWith('.'))
      .map((name) => roomOf(resolved(source, name)));
    neighbours.set(from, new Set([...(neighbours.get(from) ?? []), ...to.filter((room) => room !== from)]));
  }
  return neighbours;
}

/** As ARCHITECTURE.md draws them: a line for each room, and the others of its floor as they are called on it. */
export function arrowsOfRooms(): readonly string[] {
  const arrows: string[] = [];
  for (const [from, neighbours] of neighboursOfRooms()) {
    const [floor = ''] = from.split('/');
    const near = [...neighbours].filter((room) => room.split('/')[0] === floor).sort();
    const called = near.map((room) => (room === floor ? floor : room.slice(floor.length + 1)));
    if (called.length > 0) arrows.push(`${from} → ${called.join(' ')}`);
  }
  return arrows.sort();
}
