import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIGURE_IDS, type FigureId, type Round } from './round.ts';
import { rowsOf, rowTable } from './rows.ts';

function roundOf(value: number, others: Partial<Record<FigureId, number>> = {}): Round {
  const all = Object.fromEntries(FIGURE_IDS.map((id) => [id, value])) as Record<FigureId, number>;
  return { ...all, ...others };
}

const rounds = {
  kubelet: [300, 200, 1_000].map((value) => roundOf(value)),
  mooring: [30, 10, 400].map((value) => roundOf(value)),
};
const rowNamed = (id: string, measured = rounds) => {
  const row = rowsOf(measured, 20, 300).find((one) => one.id === id);
  assert.ok(row);
  return row;
};

test('a row has the median and the ends of each side, and of the ratios of each round', () => {
  const { kubelet, mooring, ratio } = rowNamed('one.book.p50');
  assert.deepEqual(kubelet, { median: 300, least: 200, most: 1_000 });
  assert.deepEqual(mooring, { median: 30, least: 10, most: 400 });
  assert.deepEqual(ratio, { median: 10, least: 2.5, most: 20 });
});

test('a target is missed by its figure, and by its ratio where it has one', () => {
  assert.equal(rowNamed('one.book.p50').target?.met, false);
  assert.equal(
    rowNamed('one.book.p99', { kubelet: [roundOf(300)], mooring: [roundOf(20)] }).target?.met,
    true,
  );
  const level = { kubelet: [roundOf(200)], mooring: [roundOf(200)] };
  assert.equal(rowNamed('hundred.book.p50', level).target?.met, false);
  assert.equal(rowNamed('hundred.book.p50', { ...level, kubelet: [roundOf(260)] }).target?.met, true);
});

test("what is below the settling time is Mooring's own; the kubelet has none", () => {
  const row = rowNamed('one.down.settled', { kubelet: [roundOf(230)], mooring: [roundOf(309)] });
  assert.equal(row.mooring.median, 9);
  assert.equal(row.kubelet.median, 230);
  assert.equal(row.target?.met, true);
});

test('a figure of nothing is no ratio', () => {
  const table = rowTable([rowNamed('idle.cpu', { kubelet: [roundOf(400)], mooring: [roundOf(0)] })]);
  assert.match(table, /400 \(400-400\) +0\.00 \(0\.00-0\.00\) +- \(---\) +<= 50 met$/);
});
