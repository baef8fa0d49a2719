"""Splitting texts into groups of bounded size, neighbours together: by edit distance or by vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .values import load_rapidfuzz, load_sklearn

EDIT_DISTANCES = 2_000
"""Up to so many texts every pair is compared (K * K numbers); with more, their n-grams take the place of that."""
_SMALL_BATCH = 10_000  # vectors; with more, k-means looks at a sample in each round
_DIMENSIONS = 64
_WHAT = "grouping values"


def by_edit_distance(texts: Sequence[str], capacity: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Hierarchical clustering (average linkage) of normalised edit distances.

    The tree of the clustering is cut into its largest branches of at most ``capacity`` texts; neighbouring ones are put
    together again while they fit. So there are at most 2 K / capacity + 1 groups.

    Returns:
        The number of each text's group, and its mean distance to every group's texts (float32[K, groups]).
    """
    rapidfuzz = load_rapidfuzz(_WHAT)
    distances = rapidfuzz.process.cdist(
        texts, texts, scorer=rapidfuzz.distance.Levenshtein.normalized_distance, dtype=np.float32
    )
    clustering = load_sklearn("cluster", _WHAT).AgglomerativeClustering(
        n_clusters=1, metric="precomputed", linkage="average", compute_full_tree=True
    )
    groups = _packed(_branches(clustering.fit(distances).children_, len(texts), capacity), capacity)
    labels = np.empty(len(texts), np.int64)
    for number, group in enumerate(groups):
        labels[group] = number
    members = np.eye(len(groups), dtype=np.float32)[labels]
    return labels, distances @ (members / members.sum(axis=0))


def _branches(children: npt.NDArray[np.int64], count: int, capacity: int) -> list[list[int]]:
    """The largest branches of a binary tree that hold at most ``capacity`` leaves, from left to right.

    ``children``: int[count - 1, 2], the two parts of node ``count + i``; nodes below ``count`` are leaves.
    """
    leaves: list[list[int]] = [[leaf] for leaf in range(count)]
    found: list[list[int]] = []
    sizes = [1] * count
    for left, right in children.tolist():
        sizes.append(sizes[left] + sizes[right])
    stack = [2 * count - 2]
    while stack:
        node = stack.pop()
        if node < count:
            found.append(leaves[node])
        elif sizes[node] > capacity:
            left, right = children[node - count].tolist()
            stack += [right, left]
        else:
            inside, branch = [node], []
            while inside:
                part = inside.pop()
                if part < count:
                    branch.append(part)
                else:
                    inside += reversed(children[part - count].tolist())
            found.append(branch)
    return found


def _packed(branches: list[list[int]], capacity: int) -> list[list[int]]:
    """Neighbouring branches put together while they fit: two neighbours of the result never do."""
    groups = [branches[0]]
    for branch in branches[1:]:
        if len(groups[-1]) + len(branch) <= capacity:
            groups[-1] = groups[-1] + branch
        else:
            groups.append(branch)
    return groups


def by_vectors(
    vectors: npt.NDArray[np.float32], num_groups: int, capacity: int, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """k-means; texts for which their nearest centre has no room go to the nearest that has.

    Returns:
        The number of each text's group, all of which are used, and its distance to every centre (float32[K, groups]).
    """
    cluster = load_sklearn("cluster", _WHAT)
    kind = cluster.KMeans if len(vectors) <= _SMALL_BATCH else cluster.MiniBatchKMeans
    num_groups = min(num_groups, len(np.unique(vectors, axis=0)))
    distances = kind(n_clusters=num_groups, n_init=1, random_state=seed).fit(vectors).transform(vectors)
    distances = distances.astype(np.float32)
    # Where many vectors are equal there are fewer centres than groups: the rest are as good as any.
    needed = -(-len(vectors) // capacity)
    if num_groups < needed:
        distances = np.repeat(distances, -(-needed // num_groups), axis=1)
    labels = assigned(distances, capacity)
    used, labels = np.unique(labels, return_inverse=True)
    return labels.astype(np.int64), distances[:, used]


def assigned(
    distances: npt.NDArray[np.float32], capacity: int, taken: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.int64]:
    """For each text (row) the nearest group (column) that has room, where nearer texts push out farther ones (the
    stable assignment of Gale and Shapley, by rounds).

    Args:
        distances: float32[K, groups], finite.
        capacity: how many texts a group takes.
        taken: bool[K, groups], the groups that a text is in already.

    Returns:
        int64[K]; -1 for a text that no other group has room for. O(K * (groups + log K)) for each round, of which
        there are a few in practice.
    """
    costs = distances.copy() if taken is None else np.where(taken, np.inf, distances)
    labels = np.full(len(costs), -1, np.int64)
    waiting = np.arange(len(costs))
    while len(waiting):
        wishes = costs[waiting].argmin(axis=1)
        has_choice = costs[waiting, wishes] < np.inf
        labels[waiting[has_choice]] = wishes[has_choice]
        placed = np.flatnonzero(labels >= 0)
        order = placed[np.lexsort((costs[placed, labels[placed]], labels[placed]))]
        places = np.arange(len(order)) - np.searchsorted(labels[order], labels[order])
        waiting = order[places >= capacity]
        costs[waiting, labels[waiting]] = np.inf
        labels[waiting] = -1
    return labels


def ngram_vectors(texts: Sequence[str], seed: int) -> npt.NDArray[np.float32]:
    """Texts as vectors of at most 64 numbers that keep what n-grams of characters they share (TF-IDF, reduced)."""
    vectorizer = load_sklearn("feature_extraction.text", _WHAT).TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), dtype=np.float32, max_features=2**16
    )
    counts = vectorizer.fit_transform([text.strip() or "_" for text in texts])  # an empty text has no n-grams
    dimensions = min(_DIMENSIONS, counts.shape[1] - 1)
    if dimensions < 1:
        return np.ones((len(texts), 1), np.float32)
    reduction = load_sklearn("decomposition", _WHAT).TruncatedSVD(dimensions, random_state=seed)
    return np.asarray(reduction.fit_transform(counts), np.float32)
