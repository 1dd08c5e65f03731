/** `npm run house`: counts what docs/ARCHITECTURE.md says of the house, and draws its arrows. */
import { arrowsOfRooms, floorOf, neighboursOfRooms, product, roomOf } from './house-plan.ts';

const SIZES = [
  [1, 5],
  [6, 10],
  [11, 15],
  [16, 20],
] as const;

const files = new Map<string, number>();
for (const { path } of product) files.set(roomOf(path), (files.get(roomOf(path)) ?? 0) + 1);
const counts = [...files.values()];
const most = Math.max(...counts);
const sizes = SIZES.map(([least, max]) => {
  const rooms = counts.filter((count) => count >= least && count <= max);
  return `${least} to ${max} in ${rooms.length} rooms`;
});
const largest = [...files].filter(([, count]) => count === most).map(([room]) => `${room}/`);
const arrows = [...neighboursOfRooms()].flatMap(([from, to]) => [...to].map((room) => [from, room] as const));
const near = arrows.filter(([from, to]) => floorOf(`${from}/`) === floorOf(`${to}/`)).length;
const lines = product.map(({ path, text }) => [text.split('\n').length - 1, path] as const);
const longest = Math.max(...lines.map(([count]) => count));
const longestFiles = lines.filter(([count]) => count === longest).map(([, path]) => path);

process.stdout.write(
  [
    `rooms; files: ${files.size}; ${product.length}`,
    `files per room: ${sizes.join(', ')}; ${most} in ${largest.join(', ')}`,
    `arrows of one floor; down: ${near}; ${arrows.length - near}`,
    `longest file: ${longest} lines, ${longestFiles.join(', ')}`,
    '',
    ...arrowsOfRooms(),
    '',
  ].join('\n'),
);
