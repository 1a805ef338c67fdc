"""What an audit says of each annotator."""

import numpy as np
import pandas as pd


def annotator_table(votes, label, belief, class_names):
    """Returns a row per annotator, in the order of `votes.names`.

    Columns: `annotator`; `votes`; `agreement`, the share of its votes that
    are the settled label; `expected_agreement`, the mean probability of its
    votes; `chance_corrected`, Cohen's kappa of its votes and the settled
    labels; `bias`, the class that it gave most too often, and its most
    frequent confusion; `adds`, the share of its votes that are the settled
    label where nobody else gave it; `alone`, the share of its votes for a
    class that nobody else gave there. What cannot be known is NaN.

    `label`, int64 `(N,)`, are the settled labels; `belief`, floats `(V,)`, is
    the probability of each vote's class.
    """
    frame = pd.DataFrame(
        {
            "who": votes.annotators,
            "row": votes.rows,
            "given": votes.classes,
            "true": label[votes.rows],
            "belief": belief,
        }
    )
    frame["right"] = frame.given == frame.true
    # Repeated votes of one annotator count once.
    supporters = frame.groupby(["row", "given"])["who"].transform("nunique")
    frame["alone"] = supporters == 1
    frame["adds"] = frame.alone & frame.right
    people, by_annotator = [], dict(list(frame.groupby("who")))
    for who, name in enumerate(votes.names):
        own = by_annotator.get(who, frame[:0])
        given, true = own["given"].value_counts(), own["true"].value_counts()
        chance = (given * true).sum() / max(len(own), 1) ** 2
        kappa = np.nan
        if chance < 1:
            kappa = (own["right"].mean() - chance) / (1 - chance)
        excess = given.sub(true, fill_value=0)
        excess = excess[excess > 0].nlargest(1)
        bias = [f"{class_names[c]} +{n:.0f}" for c, n in excess.items()]
        wrong = own[~own["right"]].groupby(["true", "given"]).size().nlargest(1)
        bias += [
            f"most often {class_names[given]} for {class_names[true]} ({count})"
            for (true, given), count in wrong.items()
        ]
        means = own[["right", "belief"]].mean()
        alone = own[["adds", "alone"]].mean()
        people.append((name, len(own), *means, kappa, "; ".join(bias), *alone))
    columns = (
        "annotator votes agreement expected_agreement chance_corrected bias "
        "adds alone"
    )
    return pd.DataFrame(people, columns=columns.split())
