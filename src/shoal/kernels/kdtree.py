"""A k-d tree with deletions: exact nearest and farthest records among those still there.

Microaggregation asks the same three things many times over a shrinking table: the m records nearest to a
record, the record farthest from a record, and "take this record away". Here every node has sixteen children and
every leaf up to sixteen points, kept side by side so that one loop over lanes measures all of them; the boxes shrink
when records leave, and equal rows are one point with a chain of records.

**Order of distances.** Squared Euclidean distances are summed in column order and rounded to a multiple of
2⁻⁴⁰ (about 9.1e-13); equal ones go to the smaller record index. This is the tolerance of 1e-12 that ties
have everywhere, as a total order; so a naive loop and this tree agree on what "nearest" is, tie by tie.

**Nearest** prunes with the distance to the box, computed with the operations of the point distance in the same
column order. Floating-point subtraction, squaring, addition and rounding are monotone, so the bound never
exceeds the computed distance of any point in the box: no slack is needed.

**Farthest** prunes with a box and a ball. Let o be the mean of the points, u = q - o, and M ≥ |x - o| for the
points x of a node. For every μ ≥ 0, |x - q|² ≤ |x - q|² + (1 + μ)(M² - |x - o|²). With μ = |u| / M the right side
is (|u| + M)² - (|u| / M)·|x - a|², where a = o - M·u / |u| is the point of the ball opposite to q; hence
|x - q|² ≤ (|u| + M)² - (|u| / M)·dist²(box, a). It is exact for points on the sphere, so the search for the
farthest record becomes a search near the antipode. A relative slack covers its rounding.

The functions are compiled and meant to be called from compiled loops; a tree belongs to one thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, entry, loop

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

BITS = 4
LANES = 1 << BITS
GRID = 2.0**-40
ROUNDING = 1.5 * 2.0**12  # numbers near it are GRID apart, so adding and subtracting it rounds to that step
SLACK = 1e-9


class Tree(NamedTuple):
    """The arrays of one tree. A point is a distinct row; a record is a row of the table the tree was built from.

    Inner nodes are numbered from the root 0 level by level, leaves follow. All but the root have LANES children:
    child + `shift` = LANES * parent + lane. What is known about a child stands in its lane of the parent's `bounds`.
    """

    bounds: Floats  # [inner node, row, lane]: lower sides, upper sides, then the reach (-1 when empty)
    blocks: Floats  # [leaf, column, lane]: coordinates of a leaf's live points
    leaf_size: Ints  # live points of a leaf
    slot_point: Ints  # [LANES * leaf + lane] -> point
    point_slot: Ints  # the inverse
    first_record: Ints  # [point]: its smallest live record, -1 when none is left
    next_record: Ints  # [record]: the next larger live record of the same point, or -1
    previous_record: Ints
    record_point: Ints  # [record] -> point, -1 once deleted
    origin: Floats  # mean of the points; the reach of a node is its largest distance from here
    sizes: NDArray[np.int64]  # live records, shift, steps that searches have taken so far
    stack: NDArray[np.int64]  # scratch of the searches, as the following
    stack_bound: Floats
    lanes: Floats
    direction: Floats
    no_flags: NDArray[np.bool_]


def build_tree(X: Floats) -> Tree:
    """A tree over all rows of X (float64, C order, at least one row and column).

    After many deletions the searches are faster in a tree built anew from the rows that are left.
    """
    n, columns = X.shape
    record_point, first_record = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    next_record, previous_record = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    places = np.full(2 << max(n - 1, 1).bit_length(), -1, dtype=np.int32)
    points = _collapse_equal_rows(X, places, record_point, first_record, next_record, previous_record)
    first_record = first_record[:points].copy()
    halvings = 0
    while LANES << halvings < points:
        halvings += 1
    leaves = 1 << halvings
    order = np.arange(points, dtype=np.int32)
    starts = np.full(leaves + 1, points, dtype=np.int64)
    rows = X[first_record]
    origin = rows.mean(axis=0)
    _order_points(rows, order, starts, np.empty((2, columns)), np.empty((64, 3), dtype=np.int64))

    levels = max(1, -(-halvings // BITS))
    root_children = 1 << (halvings - BITS * (levels - 1))
    inner = 1 + sum(root_children << BITS * level for level in range(levels - 1))
    tree = Tree(
        bounds=np.empty((inner, 2 * columns + 1, LANES)),
        blocks=np.zeros((leaves, columns, LANES)),
        leaf_size=np.diff(starts).astype(np.int32),
        slot_point=np.full(leaves * LANES, -1, dtype=np.int32),
        point_slot=np.empty(points, dtype=np.int32),
        first_record=first_record,
        next_record=next_record,
        previous_record=previous_record,
        record_point=record_point,
        origin=origin,
        sizes=np.array([n, LANES - 1 - root_children, 0], dtype=np.int64),
        stack=np.empty(LANES * (levels + 1), dtype=np.int64),
        stack_bound=np.empty(LANES * (levels + 1)),
        lanes=np.empty(LANES),
        direction=np.empty(columns),
        no_flags=np.empty(0, dtype=np.bool_),
    )
    tree.bounds[:, :columns] = np.inf
    tree.bounds[:, columns : 2 * columns] = -np.inf
    tree.bounds[:, 2 * columns] = -1.0
    _fill(tree, rows, order, starts)
    return tree


@entry
def live_count(tree: Tree) -> int:
    """How many records are still there."""
    return tree.sizes[0]


@entry
def delete_record(tree: Tree, record: int) -> None:
    """Take a live record away; a point without records leaves its leaf and the boxes above it shrink."""
    point = tree.record_point[record]
    before, after = tree.previous_record[record], tree.next_record[record]
    if before >= 0:
        tree.next_record[before] = after
    else:
        tree.first_record[point] = after
    if after >= 0:
        tree.previous_record[after] = before
    tree.record_point[record] = -1
    tree.sizes[0] -= 1
    if tree.first_record[point] >= 0:
        return

    slot = tree.point_slot[point]
    leaf = slot // LANES
    tree.leaf_size[leaf] -= 1
    last = leaf * LANES + tree.leaf_size[leaf]
    if slot != last:
        moved = tree.slot_point[last]
        tree.slot_point[slot] = moved
        tree.point_slot[moved] = slot
        for column in range(tree.origin.size):
            tree.blocks[leaf, column, slot - leaf * LANES] = tree.blocks[leaf, column, last - leaf * LANES]
    changed = _fit_leaf(tree, leaf)
    node = (leaf + tree.bounds.shape[0] + tree.sizes[1]) // LANES
    while changed and node > 0:
        changed = _fit_node(tree, node)
        node = (node + tree.sizes[1]) // LANES


@entry
def nearest_records(tree: Tree, query: Floats, m: int, found: Ints, distances: Floats) -> int:
    """The m live records nearest to `query`, nearest first, into `found` and `distances`; returns their number."""
    return nearest_allowed(tree, query, m, tree.next_record, tree.no_flags, found, distances)


@entry
def nearest_allowed(
    tree: Tree, query: Floats, m: int, labels: Ints, allowed: NDArray[np.bool_], found: Ints, distances: Floats
) -> int:
    """As `nearest_records`, among the live records whose label (one a record) is allowed (one flag a label)."""
    inner = tree.bounds.shape[0]
    filtered = allowed.size > 0
    count = 0
    worst = np.inf
    tree.stack[0], tree.stack_bound[0] = 0, 0.0
    depth = 1 if m > 0 else 0
    while depth > 0:
        depth -= 1
        node = tree.stack[depth]
        if tree.stack_bound[depth] > worst:
            continue
        tree.sizes[2] += LANES * query.size
        if node < inner:
            _nearest_bounds(tree.bounds, node, query, tree.lanes)
            bottom = depth
            for lane in range(LANES):
                bound = tree.lanes[lane]
                if bound <= worst and bound < np.inf:
                    depth = _push(tree, bottom, depth, LANES * node + lane - tree.sizes[1], bound, -1.0)
            continue
        leaf = node - inner
        _lane_distances(tree.blocks, leaf, query, tree.lanes)
        for lane in range(tree.leaf_size[leaf]):
            distance = tree.lanes[lane]
            if distance > worst:
                continue
            record = tree.first_record[tree.slot_point[leaf * LANES + lane]]
            while record >= 0:
                if not filtered or allowed[labels[record]]:
                    if count < m:
                        count += 1
                    elif distance > worst or (distance == worst and record > found[m - 1]):
                        break
                    place = count - 1
                    while place > 0 and (
                        distances[place - 1] > distance
                        or (distances[place - 1] == distance and found[place - 1] > record)
                    ):
                        distances[place] = distances[place - 1]
                        found[place] = found[place - 1]
                        place -= 1
                    tree.sizes[2] += count - place
                    distances[place] = distance
                    found[place] = record
                    if count == m:
                        worst = distances[m - 1]
                record = tree.next_record[record]
    return count


@entry
def farthest_record(tree: Tree, query: Floats) -> int:
    """The live record farthest from `query`, -1 when none is left."""
    inner = tree.bounds.shape[0]
    query_reach = 0.0
    for column in range(query.size):
        tree.direction[column] = query[column] - tree.origin[column]
        query_reach += tree.direction[column] * tree.direction[column]
    query_reach = np.sqrt(query_reach)
    for column in range(query.size):
        tree.direction[column] /= max(query_reach, 1e-150)

    best, best_distance = -1, -1.0
    tree.stack[0], tree.stack_bound[0] = 0, np.inf
    depth = 1
    while depth > 0:
        depth -= 1
        node = tree.stack[depth]
        if tree.stack_bound[depth] < best_distance:
            continue
        tree.sizes[2] += LANES * query.size
        if node < inner:
            _farthest_bounds(tree, node, query_reach)
            bottom = depth
            for lane in range(LANES):
                bound = tree.lanes[lane]
                if bound >= best_distance and bound >= 0.0:
                    depth = _push(tree, bottom, depth, LANES * node + lane - tree.sizes[1], bound, 1.0)
            continue
        leaf = node - inner
        _lane_distances(tree.blocks, leaf, query, tree.lanes)
        for lane in range(tree.leaf_size[leaf]):
            distance = tree.lanes[lane]
            if distance >= best_distance:
                record = tree.first_record[tree.slot_point[leaf * LANES + lane]]
                if distance > best_distance or record < best:
                    best, best_distance = record, distance
    return best


@bare
def rounded(distance: float) -> float:
    """A squared distance as it is compared: a multiple of 2⁻⁴⁰ (beyond 2048, of its own precision)."""
    return (distance + ROUNDING) - ROUNDING


@bare
def _push(tree: Tree, bottom: int, depth: int, node: int, bound: float, sign: float) -> int:
    """Insert a child among those of its parent on the stack, the most promising on top; sign -1: small bounds first."""
    place = depth
    while place > bottom and sign * tree.stack_bound[place - 1] > sign * bound:
        tree.stack[place] = tree.stack[place - 1]
        tree.stack_bound[place] = tree.stack_bound[place - 1]
        place -= 1
    tree.stack[place] = node
    tree.stack_bound[place] = bound
    return depth + 1


# In the following three the inner loop runs over the lanes (counted by `lanes.size`: a constant would be unrolled)
# so that the compiler uses vector instructions; the sum of a lane still runs over the columns in their order.


@bare
def _lane_distances(blocks: Floats, leaf: int, query: Floats, lanes: Floats) -> None:
    block = blocks[leaf]
    for lane in range(lanes.size):
        lanes[lane] = 0.0
    for column in range(query.size):
        q = query[column]
        for lane in range(lanes.size):
            lanes[lane] += (block[column, lane] - q) * (block[column, lane] - q)
    for lane in range(lanes.size):
        lanes[lane] = rounded(lanes[lane])


@bare
def _nearest_bounds(bounds: Floats, node: int, query: Floats, lanes: Floats) -> None:
    box = bounds[node]
    for lane in range(lanes.size):
        lanes[lane] = 0.0
    for column in range(query.size):
        q = query[column]
        for lane in range(lanes.size):
            lanes[lane] += _gap_squared(box[column, lane], box[column + query.size, lane], q)
    for lane in range(lanes.size):
        lanes[lane] = rounded(lanes[lane])


@bare
def _farthest_bounds(tree: Tree, node: int, query_reach: float) -> None:
    box, lanes = tree.bounds[node], tree.lanes
    columns = tree.origin.size
    for lane in range(lanes.size):
        lanes[lane] = 0.0
    for column in range(columns):
        o, u = tree.origin[column], tree.direction[column]
        for lane in range(lanes.size):
            opposite = o - u * box[2 * columns, lane]
            lanes[lane] += _gap_squared(box[column, lane], box[column + columns, lane], opposite)
    for lane in range(lanes.size):
        # No branches here: an empty child has an infinite gap and ends up at minus infinity.
        reach = max(box[2 * columns, lane], 1e-150)
        sphere = (query_reach + reach) * (query_reach + reach) * (1.0 + SLACK) + GRID
        lanes[lane] = sphere - lanes[lane] * (query_reach / reach)


@bare
def _gap_squared(lower: float, upper: float, value: float) -> float:
    gap = max(max(lower - value, value - upper), 0.0)
    return gap * gap


@entry
def _fill(tree: Tree, rows: Floats, order: Ints, starts: NDArray[np.int64]) -> None:
    for leaf in range(tree.leaf_size.size):
        for lane in range(tree.leaf_size[leaf]):
            point = order[starts[leaf] + lane]
            tree.slot_point[leaf * LANES + lane] = point
            tree.point_slot[point] = leaf * LANES + lane
            for column in range(tree.origin.size):
                tree.blocks[leaf, column, lane] = rows[starts[leaf] + lane, column]
        _fit_leaf(tree, leaf)
    for node in range(tree.bounds.shape[0] - 1, 0, -1):
        _fit_node(tree, node)


@bare
def _fit_leaf(tree: Tree, leaf: int) -> bool:
    """Measure a leaf anew and tell its parent; whether anything changed there."""
    columns = tree.origin.size
    size = tree.leaf_size[leaf]
    place = leaf + tree.bounds.shape[0] + tree.sizes[1]
    parent, lane = place // LANES, place % LANES
    changed = False
    largest = -1.0
    for i in range(size):
        total = 0.0
        for column in range(columns):
            total += (tree.blocks[leaf, column, i] - tree.origin[column]) ** 2
        largest = max(largest, total)
    reach = np.sqrt(largest) if size > 0 else -1.0
    if tree.bounds[parent, 2 * columns, lane] != reach:
        tree.bounds[parent, 2 * columns, lane] = reach
        changed = True
    for column in range(columns):
        lower, upper = np.inf, -np.inf
        for i in range(size):
            lower = min(lower, tree.blocks[leaf, column, i])
            upper = max(upper, tree.blocks[leaf, column, i])
        if tree.bounds[parent, column, lane] != lower or tree.bounds[parent, columns + column, lane] != upper:
            tree.bounds[parent, column, lane] = lower
            tree.bounds[parent, columns + column, lane] = upper
            changed = True
    return changed


@bare
def _fit_node(tree: Tree, node: int) -> bool:
    """The same for an inner node other than the root, from what it knows of its children."""
    columns = tree.origin.size
    place = node + tree.sizes[1]
    parent, lane = place // LANES, place % LANES
    changed = False
    for row in range(2 * columns + 1):
        value = tree.bounds[node, row, 0]
        if row < columns:
            for i in range(1, LANES):
                value = min(value, tree.bounds[node, row, i])
        else:
            for i in range(1, LANES):
                value = max(value, tree.bounds[node, row, i])
        if tree.bounds[parent, row, lane] != value:
            tree.bounds[parent, row, lane] = value
            changed = True
    return changed


@loop
def _collapse_equal_rows(
    X: Floats, places: Ints, record_point: Ints, first_record: Ints, next_record: Ints, previous_record: Ints
) -> int:
    """Find the points of the rows and chain the records of each in ascending order; returns the number of points."""
    n, columns = X.shape
    mask = places.size - 1
    bits = X.view(np.uint64)
    points = 0
    for record in range(n):
        code = np.uint64(14695981039346656037)
        for column in range(columns):
            # -0.0 equals 0.0 and must meet it in the same place
            word = bits[record, column] if X[record, column] != 0.0 else np.uint64(0)
            code = (code ^ word) * np.uint64(0x9E3779B97F4A7C15)
            code ^= code >> np.uint64(29)
        place = np.int64(code & np.uint64(mask))
        while True:
            point = places[place]
            if point < 0:
                places[place] = points
                record_point[record] = points
                first_record[points] = record
                previous_record[record] = record
                points += 1
                break
            equal = True
            for column in range(columns):
                if X[first_record[point], column] != X[record, column]:
                    equal = False
                    break
            if equal:
                # until all are chained, the first record of a point remembers its last one
                first = first_record[point]
                last = previous_record[first]
                record_point[record] = point
                next_record[last] = record
                previous_record[record] = last
                previous_record[first] = record
                break
            place = (place + 1) & mask
    for point in range(points):
        previous_record[first_record[point]] = -1
    return points


@entry
def _order_points(
    rows: Floats, order: Ints, starts: NDArray[np.int64], sides: Floats, nodes: NDArray[np.int64]
) -> None:
    """Arrange rows so that each leaf is a run, halved along the widest column; `order` goes with them."""
    columns = rows.shape[1]
    leaves = starts.size - 1
    nodes[0, 0], nodes[0, 1], nodes[0, 2] = 1, 0, order.size
    depth = 1
    while depth > 0:
        depth -= 1
        node, begin, end = nodes[depth, 0], nodes[depth, 1], nodes[depth, 2]
        if node >= leaves:
            starts[node - leaves] = begin
            continue
        for column in range(columns):
            sides[0, column] = np.inf
            sides[1, column] = -np.inf
        for i in range(begin, end):
            for column in range(columns):
                sides[0, column] = min(sides[0, column], rows[i, column])
                sides[1, column] = max(sides[1, column], rows[i, column])
        widest = 0
        for column in range(1, columns):
            if sides[1, column] - sides[0, column] > sides[1, widest] - sides[0, widest]:
                widest = column
        middle = (begin + end) // 2
        _select(rows, order, widest, begin, end - 1, middle)
        nodes[depth, 0], nodes[depth, 1], nodes[depth, 2] = 2 * node, begin, middle
        nodes[depth + 1, 0], nodes[depth + 1, 1], nodes[depth + 1, 2] = 2 * node + 1, middle, end
        depth += 2


@bare
def _select(rows: Floats, order: Ints, column: int, low: int, high: int, middle: int) -> None:
    """Hoare's selection: afterwards no row before `middle` is larger in the column than one from `middle` on."""
    while low < high:
        pivot = rows[(low + high) // 2, column]
        i, j = low, high
        while i <= j:
            while rows[i, column] < pivot:
                i += 1
            while rows[j, column] > pivot:
                j -= 1
            if i <= j:
                for c in range(rows.shape[1]):
                    rows[i, c], rows[j, c] = rows[j, c], rows[i, c]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return
