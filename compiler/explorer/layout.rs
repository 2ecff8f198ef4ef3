//! Lays out a control-flow graph for drawing: blocks in layers from top to bottom, loops indented, exits below the loop,
//! back edges at the left side, edges that skip layers at the right side.
//!
//! Layers: loops are found on the DFS tree (Paul Havlak, Nesting of Reducible and Irreducible Loops, 1997); within a loop
//! each block or inner loop starts below its predecessors, and a loop is as high as what it holds, so that what follows it
//! stands below all of it. Columns: the blocks of a layer in the order of the DFS, each below its first predecessor where
//! there is room, and as far right as its loops are deep. Edges run in orthogonal segments: horizontal ones on tracks
//! between the layers, vertical ones straight down to the next layer or in lanes beside everything that stands in the
//! layers that they pass; tracks and lanes are given out greedily, by interval (edges to one target share a lane).
//!
//! **in**: sizes and edges; node 0 is the entry. **out**: whole pixels; no two nodes overlap, no vertical lane crosses a
//! node. The same graph gives the same layout. Cost: near-linear (sorting).

/// A graph to lay out. Nodes are numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Width and height of each node.
    pub sizes: Vec<(i32, i32)>,
    /// Edges, as pairs of nodes, in the order in which a node's edges leave it.
    pub edges: Vec<(usize, usize)>,
}

/// Where everything stands.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Layout {
    /// Left and top of each node.
    pub places: Vec<(i32, i32)>,
    /// Width and height of each node, as given.
    pub sizes: Vec<(i32, i32)>,
    /// How many loops each node is in.
    pub depths: Vec<u32>,
    /// For each edge its corners, from the source's bottom to the target's top, and whether it goes back.
    pub routes: Vec<Route>,
    /// Width and height of the whole.
    pub size: (i32, i32),
}

/// The way of one edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its corners.
    pub corners: Vec<(i32, i32)>,
    /// Does it go back to a loop's header?
    pub back: bool,
}

const INDENT: i32 = 28;
const GAP: i32 = 30;
const TRACK: i32 = 7;
const LANE: i32 = 9;
const PORT: i32 = 46;
const MARGIN: i32 = 16;

/// Lays out the graph.
pub fn compute(graph: &Graph) -> Layout {
    let count = graph.sizes.len();
    if count == 0 {
        return Layout::default();
    }
    let tree = Tree::compute(graph);
    let loops = Loops::compute(graph, &tree);
    let layers = layers(graph, &tree, &loops);
    let columns = columns(graph, &tree, &loops, &layers);
    route(graph, &tree, &loops, &layers, &columns)
}

/// Adjacency in one array: the items of node n are `items[starts[n]..starts[n + 1]]`.
struct Adjacency {
    starts: Vec<usize>,
    items: Vec<usize>,
}

impl Adjacency {
    fn compute(count: usize, pairs: impl Iterator<Item = (usize, usize)> + Clone) -> Adjacency {
        let mut starts = vec![0; count + 1];
        pairs.clone().for_each(|(from, _)| starts[from + 1] += 1);
        for node in 0..count {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts[count]];
        for (from, item) in pairs {
            items[next[from]] = item;
            next[from] += 1;
        }
        Adjacency { starts, items }
    }

    fn of(&self, node: usize) -> &[usize] {
        &self.items[self.starts[node]..self.starts[node + 1]]
    }
}

/// A depth-first forest: from the entry, then from each node that nothing before it reaches.
struct Tree {
    /// Nodes in preorder.
    preorder: Vec<usize>,
    /// Position of each node in preorder, and the last position below it.
    first: Vec<usize>,
    last: Vec<usize>,
    /// Nodes in reverse postorder.
    rpo: Vec<usize>,
    /// The nodes that trees start from.
    is_root: Vec<bool>,
}

impl Tree {
    fn compute(graph: &Graph) -> Tree {
        let count = graph.sizes.len();
        let successors = Adjacency::compute(count, graph.edges.iter().copied());
        let mut tree = Tree {
            preorder: Vec::new(),
            first: vec![usize::MAX; count],
            last: vec![0; count],
            rpo: Vec::new(),
            is_root: vec![false; count],
        };
        for root in 0..count {
            if tree.first[root] != usize::MAX {
                continue;
            }
            // Trees that start later must come later in reverse postorder: each is reversed by itself.
            let start = tree.rpo.len();
            tree.is_root[root] = true;
            let mut stack = vec![(root, 0)];
            tree.enter(root);
            while let Some((node, position)) = stack.last_mut() {
                // The last successor is gone into first, so that the first one comes first in reverse postorder.
                let ways = successors.of(*node);
                if let Some(next) = ways.len().checked_sub(*position + 1).map(|way| &ways[way]) {
                    *position += 1;
                    if tree.first[*next] == usize::MAX {
                        tree.enter(*next);
                        stack.push((*next, 0));
                    }
                } else {
                    tree.last[*node] = tree.preorder.len() - 1;
                    tree.rpo.push(*node);
                    stack.pop();
                }
            }
            tree.rpo[start..].reverse();
        }
        tree
    }

    fn enter(&mut self, node: usize) {
        self.first[node] = self.preorder.len();
        self.preorder.push(node);
    }

    fn is_below(&self, node: usize, ancestor: usize) -> bool {
        self.first[ancestor] <= self.first[node] && self.first[node] <= self.last[ancestor]
    }

    /// Does the edge go back to the node itself or to what stands above it?
    fn is_back(&self, (from, to): (usize, usize)) -> bool {
        self.is_below(from, to)
    }
}

/// Which loop each node is in.
struct Loops {
    /// The header of the innermost loop around a node; a header's own loop does not count for itself.
    parent: Vec<Option<usize>>,
    is_header: Vec<bool>,
    depth: Vec<u32>,
}

impl Loops {
    fn compute(graph: &Graph, tree: &Tree) -> Loops {
        let count = graph.sizes.len();
        let predecessors = Adjacency::compute(count, graph.edges.iter().map(|(from, to)| (*to, *from)));
        let mut merged: Vec<usize> = (0..count).collect();
        let mut loops = Loops { parent: vec![None; count], is_header: vec![false; count], depth: vec![0; count] };
        // Inner headers come later in preorder, so they are done first.
        for header in tree.preorder.iter().rev().copied() {
            let mut work: Vec<usize> = Vec::new();
            for from in predecessors.of(header) {
                if tree.is_back((*from, header)) {
                    loops.is_header[header] = true;
                    work.push(find(&mut merged, *from));
                }
            }
            while let Some(node) = work.pop() {
                if node == header || loops.parent[node].is_some() {
                    continue;
                }
                loops.parent[node] = Some(header);
                merged[node] = header;
                for from in predecessors.of(node) {
                    let from = find(&mut merged, *from);
                    // An edge from outside into the middle belongs to no loop of this header.
                    if tree.is_below(from, header) {
                        work.push(from);
                    }
                }
            }
        }
        for node in tree.preorder.iter().copied() {
            let around = loops.parent[node].map_or(0, |header| loops.depth[header]);
            loops.depth[node] = around + u32::from(loops.is_header[node]);
        }
        loops
    }
}

/// The representative of a node, with the path to it halved.
fn find(merged: &mut [usize], mut node: usize) -> usize {
    while merged[node] != node {
        merged[node] = merged[merged[node]];
        node = merged[node];
    }
    node
}

/// The layer of each node, from 0.
fn layers(graph: &Graph, tree: &Tree, loops: &Loops) -> Vec<usize> {
    let count = graph.sizes.len();
    let predecessors = Adjacency::compute(count, graph.edges.iter().map(|(from, to)| (*to, *from)));
    // For each header, the nodes and inner headers directly in its loop, in reverse postorder; the last row: in no loop.
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); count + 1];
    for node in tree.rpo.iter().copied() {
        members[loops.parent[node].unwrap_or(count)].push(node);
    }
    // Layers relative to the loop's header, inner loops first: a loop's height must be known before what follows it.
    let mut relative = vec![0; count];
    let mut height = vec![1; count];
    let headers = tree.preorder.iter().rev().copied().filter(|node| loops.is_header[*node]);
    for owner in headers.map(Some).chain([None]) {
        let row = owner.unwrap_or(count);
        let mut bottom = usize::from(owner.is_some());
        for node in members[row].iter().copied() {
            let mut top = usize::from(owner.is_some());
            for from in predecessors.of(node) {
                if tree.is_back((*from, node)) {
                    continue;
                }
                // What stands for the predecessor in this loop: itself, or the outermost loop around it.
                if let Some(from) = member_of(loops, *from, owner)
                    && from != node
                {
                    top = top.max(relative[from] + height[from]);
                }
            }
            // What nothing before it reaches stands below all before it.
            if tree.is_root[node] {
                top = top.max(bottom);
            }
            relative[node] = top;
            bottom = bottom.max(top + height[node]);
        }
        if let Some(header) = owner {
            height[header] = bottom;
        }
    }
    let mut layer = vec![0; count];
    for node in tree.preorder.iter().copied() {
        layer[node] = relative[node] + loops.parent[node].map_or(0, |header| layer[header]);
    }
    layer
}

/// What stands for a node among the members of a loop (or of none): itself, or the header of the outermost loop around it
/// that is a member; `None` for the loop's own header and for nodes outside.
fn member_of(loops: &Loops, mut node: usize, owner: Option<usize>) -> Option<usize> {
    loop {
        if loops.parent[node] == owner {
            return Some(node);
        }
        if Some(node) == owner {
            return None;
        }
        node = loops.parent[node]?;
    }
}

/// Left edge of each node.
fn columns(graph: &Graph, tree: &Tree, loops: &Loops, layers: &[usize]) -> Vec<i32> {
    let count = graph.sizes.len();
    let predecessors = Adjacency::compute(count, graph.edges.iter().map(|(from, to)| (*to, *from)));
    let mut cursor = vec![i32::MIN; layers.iter().max().map_or(0, |last| last + 1)];
    let mut left = vec![i32::MIN; count];
    for node in tree.rpo.iter().copied() {
        let indent = loops.depth[node] as i32 * INDENT;
        let below = predecessors
            .of(node)
            .iter()
            .filter(|from| left[**from] != i32::MIN && layers[**from] < layers[node])
            .map(|from| left[*from] + (loops.depth[node] as i32 - loops.depth[*from] as i32) * INDENT)
            .min();
        let row = &mut cursor[layers[node]];
        left[node] = indent.max(below.unwrap_or(indent)).max(*row);
        *row = left[node] + graph.sizes[node].0 + GAP;
    }
    left
}

/// The outermost coordinate taken so far in each layer, on one side: range maximum and range assignment on a segment tree.
struct Extent {
    leaves: usize,
    most: Vec<i32>,
    /// Set for a whole subtree, where it is more than what stands below.
    whole: Vec<i32>,
}

impl Extent {
    fn new(values: &[i32]) -> Extent {
        let leaves = values.len().next_power_of_two();
        let mut most = vec![i32::MIN; 2 * leaves];
        most[leaves..leaves + values.len()].copy_from_slice(values);
        for node in (1..leaves).rev() {
            most[node] = most[2 * node].max(most[2 * node + 1]);
        }
        Extent { leaves, whole: vec![i32::MIN; 2 * leaves], most }
    }

    /// The maximum over the layers `start..end`.
    fn most(&self, start: usize, end: usize) -> i32 {
        self.visit_most(1, 0, self.leaves, start, end)
    }

    fn visit_most(&self, node: usize, from: usize, to: usize, start: usize, end: usize) -> i32 {
        if end <= from || to <= start {
            return i32::MIN;
        }
        if start <= from && to <= end {
            return self.most[node];
        }
        let middle = (from + to) / 2;
        let below = self.visit_most(2 * node, from, middle, start, end).max(self.visit_most(
            2 * node + 1,
            middle,
            to,
            start,
            end,
        ));
        below.max(self.whole[node])
    }

    /// Raises the layers `start..end` to at least `value`.
    fn raise(&mut self, start: usize, end: usize, value: i32) {
        self.visit_raise(1, 0, self.leaves, start, end, value);
    }

    fn visit_raise(&mut self, node: usize, from: usize, to: usize, start: usize, end: usize, value: i32) {
        if end <= from || to <= start {
            return;
        }
        self.most[node] = self.most[node].max(value);
        if start <= from && to <= end {
            self.whole[node] = self.whole[node].max(value);
            return;
        }
        let middle = (from + to) / 2;
        self.visit_raise(2 * node, from, middle, start, end, value);
        self.visit_raise(2 * node + 1, middle, to, start, end, value);
    }
}

/// How an edge gets from its source's layer to its target's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Straight down to the next layer.
    Next,
    /// In a lane at the right, past the layers between.
    Right,
    /// In a lane at the left, up.
    Left,
}

/// Where lanes run: one for each target and side.
struct Lanes {
    right: Vec<Option<i32>>,
    left: Vec<Option<i32>>,
}

fn lanes(graph: &Graph, layers: &[usize], columns: &[i32], ways: &[Way]) -> Lanes {
    let count = graph.sizes.len();
    let rows = layers.iter().max().map_or(0, |last| last + 1);
    let (mut rights, mut lefts) = (vec![0; rows], vec![0; rows]);
    for node in 0..count {
        let row = layers[node];
        rights[row] = rights[row].max(columns[node] + graph.sizes[node].0);
        // Distances to the left count as positive, so that both sides look for a maximum.
        lefts[row] = lefts[row].max(-columns[node]);
    }
    let (mut rights, mut lefts) = (Extent::new(&rights), Extent::new(&lefts));
    let mut spans: Vec<(usize, usize, usize, bool)> = Vec::new();
    let mut first: Vec<[Option<usize>; 2]> = vec![[None; 2]; count];
    for (edge, way) in graph.edges.iter().zip(ways) {
        let (start, end, side) = match way {
            Way::Next => continue,
            Way::Right => (layers[edge.0] + 1, layers[edge.1], 0),
            Way::Left => (layers[edge.1], layers[edge.0] + 1, 1),
        };
        match first[edge.1][side] {
            Some(position) => {
                let (from, to, ..) = spans[position];
                spans[position] = (from.min(start), to.max(end), edge.1, side == 1);
            }
            None => {
                first[edge.1][side] = Some(spans.len());
                spans.push((start, end, edge.1, side == 1));
            }
        }
    }
    // Short lanes first, so that they stand inside of long ones.
    spans.sort_by_key(|(start, end, target, back)| (end - start, *target, *back));
    let mut lanes = Lanes { right: vec![None; count], left: vec![None; count] };
    for (start, end, target, back) in spans {
        let extent = if back { &mut lefts } else { &mut rights };
        let place = extent.most(start, end) + LANE;
        extent.raise(start, end, place);
        let side = if back { &mut lanes.left } else { &mut lanes.right };
        side[target] = Some(if back { -place } else { place });
    }
    lanes
}

fn route(graph: &Graph, tree: &Tree, loops: &Loops, layers: &[usize], columns: &[i32]) -> Layout {
    let count = graph.sizes.len();
    let rows = layers.iter().max().map_or(0, |last| last + 1);
    let ways: Vec<Way> = graph
        .edges
        .iter()
        .map(|(from, to)| match layers[*to].cmp(&(layers[*from] + 1)) {
            std::cmp::Ordering::Equal => Way::Next,
            std::cmp::Ordering::Greater => Way::Right,
            std::cmp::Ordering::Less => Way::Left,
        })
        .collect();
    let lanes = lanes(graph, layers, columns, &ways);

    // Where edges leave and enter their nodes, and their horizontal pieces: (gap, from, to), gap g above layer g.
    let (mut leaving, mut entering) = (vec![0; count], vec![0; count]);
    let mut ends = Vec::with_capacity(graph.edges.len());
    let mut pieces: Vec<(usize, i32, i32, usize)> = Vec::new();
    for (number, ((from, to), way)) in graph.edges.iter().zip(&ways).enumerate() {
        // Ports are far enough apart for the labels of a branch's edges.
        let port = |node: usize, position: i32| {
            let width = graph.sizes[node].0;
            columns[node] + (20 + PORT * position).min(width - 8).max(4)
        };
        let out = port(*from, leaving[*from]);
        leaving[*from] += 1;
        let into = match way {
            Way::Next => {
                entering[*to] += 1;
                port(*to, entering[*to] - 1)
            }
            Way::Right => columns[*to] + graph.sizes[*to].0 - 6,
            Way::Left => columns[*to] + 6,
        };
        ends.push((out, into));
        let lane = match way {
            Way::Next => None,
            Way::Right => lanes.right[*to],
            Way::Left => lanes.left[*to],
        };
        match lane {
            None => pieces.push((layers[*to], out.min(into), out.max(into), 2 * number)),
            Some(lane) => {
                pieces.push((layers[*from] + 1, out.min(lane), out.max(lane), 2 * number));
                pieces.push((layers[*to], into.min(lane), into.max(lane), 2 * number + 1));
            }
        }
    }
    // Tracks: in each gap, a piece takes the first track that is free at its left end.
    pieces.sort();
    let mut tracks = vec![0; 2 * graph.edges.len()];
    let mut used: Vec<i32> = vec![0; rows + 1];
    let mut ends_of_tracks: Vec<i32> = Vec::new();
    let mut gap_of_tracks = usize::MAX;
    for (gap, from, to, piece) in pieces {
        if gap != gap_of_tracks {
            gap_of_tracks = gap;
            ends_of_tracks.clear();
        }
        // A bounded search keeps wide gaps linear; beyond it pieces share the last track.
        let free = ends_of_tracks.iter().take(24).position(|end| *end + 4 < from);
        let track = match free {
            Some(track) => track,
            None if ends_of_tracks.len() < 24 => {
                ends_of_tracks.push(i32::MIN);
                ends_of_tracks.len() - 1
            }
            None => 23,
        };
        ends_of_tracks[track] = ends_of_tracks[track].max(to);
        tracks[piece] = track as i32;
        used[gap] = used[gap].max(track as i32 + 1);
    }

    // Heights: a gap holds its tracks, a layer its highest node.
    let mut heights = vec![0; rows];
    for node in 0..count {
        heights[layers[node]] = heights[layers[node]].max(graph.sizes[node].1);
    }
    let mut gap_tops = vec![MARGIN; rows + 1];
    let mut tops = vec![0; rows];
    for row in 0..rows {
        tops[row] = gap_tops[row] + 14 + TRACK * used[row];
        gap_tops[row + 1] = tops[row] + heights[row];
    }
    let bottom = gap_tops[rows] + 14 + TRACK * used[rows] + MARGIN;

    let leftmost = lanes.left.iter().flatten().copied().chain(columns.iter().copied()).min().unwrap_or(0);
    let shift = MARGIN - leftmost;
    let mut width = 0;
    let mut layout = Layout { depths: loops.depth.clone(), sizes: graph.sizes.clone(), ..Layout::default() };
    for node in 0..count {
        layout.places.push((columns[node] + shift, tops[layers[node]]));
        width = width.max(columns[node] + graph.sizes[node].0);
    }
    width = lanes.right.iter().flatten().copied().fold(width, i32::max);
    for (number, ((from, to), way)) in graph.edges.iter().zip(&ways).enumerate() {
        let (out, into) = (ends[number].0 + shift, ends[number].1 + shift);
        let start = tops[layers[*from]] + graph.sizes[*from].1;
        let end = tops[layers[*to]];
        let track = |gap: usize, piece: usize| gap_tops[gap] + 7 + TRACK * tracks[piece];
        let lane = match way {
            Way::Next => None,
            Way::Right => lanes.right[*to],
            Way::Left => lanes.left[*to],
        };
        let mut corners = vec![(out, start)];
        match lane {
            None => {
                let y = track(layers[*to], 2 * number);
                corners.extend([(out, y), (into, y)]);
            }
            Some(lane) => {
                let (first, second) = (track(layers[*from] + 1, 2 * number), track(layers[*to], 2 * number + 1));
                corners.extend([(out, first), (lane + shift, first), (lane + shift, second), (into, second)]);
            }
        }
        corners.push((into, end));
        corners.dedup();
        layout.routes.push(Route { corners, back: tree.is_back((*from, *to)) });
    }
    layout.size = (width + shift + MARGIN, bottom);
    layout
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;

    fn lay(count: usize, edges: &[(usize, usize)]) -> Layout {
        compute(&Graph { sizes: vec![(80, 40); count], edges: edges.to_vec() })
    }

    #[test]
    fn a_loop_is_indented_and_its_exit_stands_below_it() {
        // 0 → 1 ⇄ 2, 1 → 3: the header's exit must not stand beside the body.
        let layout = lay(4, &[(0, 1), (1, 2), (1, 3), (2, 1)]);
        assert_eq!(layout.depths, [0, 1, 1, 0]);
        let [entry, header, body, exit] = layout.places[..] else { panic!("four nodes") };
        assert!(entry.1 < header.1 && header.1 < body.1 && body.1 < exit.1);
        assert!(header.0 > entry.0 && body.0 == header.0 && exit.0 == entry.0);
        let backs: Vec<bool> = layout.routes.iter().map(|route| route.back).collect();
        assert_eq!(backs, [false, false, false, true]);
        let lane = layout.routes[3].corners.iter().map(|corner| corner.0).min().unwrap();
        assert!(lane < header.0, "the back edge runs at the left of the loop");
    }

    #[test]
    fn arms_stand_side_by_side_above_the_join() {
        let layout = lay(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
        assert_eq!(layout.places[1].1, layout.places[2].1);
        assert!(layout.places[1].0 + 80 < layout.places[2].0 || layout.places[2].0 + 80 < layout.places[1].0);
        assert!(layout.places[3].1 > layout.places[1].1 + 40);
    }

    #[test]
    fn random_graphs_keep_their_distance() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let count = random.between(1, 25);
            let edges: Vec<(usize, usize)> =
                (0..random.below(2 * count + 1)).map(|_| (random.below(count), random.below(count))).collect();
            let sizes: Vec<(i32, i32)> =
                (0..count).map(|_| (random.between(40, 200) as i32, random.between(20, 90) as i32)).collect();
            let graph = Graph { sizes, edges };
            let layout = compute(&graph);
            let boxes: Vec<(i32, i32, i32, i32)> = (0..count)
                .map(|node| {
                    let ((x, y), (w, h)) = (layout.places[node], graph.sizes[node]);
                    (x, y, x + w, y + h)
                })
                .collect();
            for (position, a) in boxes.iter().enumerate() {
                assert!(a.0 >= 0 && a.1 >= 0 && a.2 <= layout.size.0 && a.3 <= layout.size.1, "seed {seed}");
                for b in &boxes[position + 1..] {
                    assert!(a.2 <= b.0 || b.2 <= a.0 || a.3 <= b.1 || b.3 <= a.1, "seed {seed}: nodes overlap");
                }
            }
            for (edge, route) in graph.edges.iter().zip(&layout.routes) {
                let (start, end) = (route.corners[0], route.corners[route.corners.len() - 1]);
                let (from, to) = (boxes[edge.0], boxes[edge.1]);
                assert!(from.0 <= start.0 && start.0 <= from.2 && start.1 == from.3, "seed {seed}");
                assert!(to.0 <= end.0 && end.0 <= to.2 && end.1 == to.1, "seed {seed}");
                for pair in route.corners.windows(2) {
                    assert!(pair[0].0 == pair[1].0 || pair[0].1 == pair[1].1, "seed {seed}: edges are orthogonal");
                    for node in &boxes {
                        let (left, right) = (pair[0].0.min(pair[1].0), pair[0].0.max(pair[1].0));
                        let (top, bottom) = (pair[0].1.min(pair[1].1), pair[0].1.max(pair[1].1));
                        let inside = left < node.2
                            && node.0 < right.max(left + 1)
                            && top < node.3
                            && node.1 < bottom.max(top + 1);
                        assert!(!inside || bottom == node.1 || top == node.3, "seed {seed}: an edge crosses a node");
                    }
                }
            }
        }
    }

    #[test]
    fn large_graphs_are_laid_out_in_linear_time() {
        // An `else if` chain of 20,000 arms that all join at the end, within one loop.
        let arms = 20_000;
        let mut edges = vec![(0, 1)];
        for arm in 0..arms {
            let (test, body) = (1 + 2 * arm, 2 + 2 * arm);
            edges.extend([(test, body), (test, test + 2), (body, 1 + 2 * arms)]);
        }
        edges.push((1 + 2 * arms, 1));
        let start = std::time::Instant::now();
        let layout = lay(2 + 2 * arms, &edges);
        assert_eq!(layout.places.len(), 2 + 2 * arms);
        assert!(start.elapsed().as_secs() < 10);
    }
}
