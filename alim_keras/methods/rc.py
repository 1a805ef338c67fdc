"""RC: the risk-consistent method, cross-entropy with weights that follow P."""

import keras

from alim_keras.methods.base import PartialLabelModel


@keras.saving.register_keras_serializable(package="alim_keras")
class RC(PartialLabelModel):
    """Risk-consistent partial label learning.

    The loss is `-sum_c w_c log P_c`. The weights begin as `S / |S|`; after
    each gradient step a second forward pass of the batch sets them to
    `w = S P / sum(S P)`, as in its authors' code. There is no moving average.
    `PRODEN` does without the second pass.

    With `callbacks.ALIM`, `w = (S + lambda (1 - S)) P`, normalised. No public
    code says how the paper combined the two; this is Eq. 3 with P the
    classifier's, and lambda the quantile of the classifier's ratios.
    `norm="onehot"` is possible too.

    Args:
        backbone: See `PartialLabelModel`; so are all others.

    Example:

    ```python
    model = alim_keras.methods.RC(
        alim_keras.networks.small_cnn((28, 28, 1)), num_classes=10,
        num_examples=len(images))
    model.compile(optimizer=keras.optimizers.SGD(0.01, momentum=0.9))
    data = alim_keras.data.train_dataset(images, candidates, batch_size=128)
    model.fit(data, epochs=20, callbacks=[
        alim_keras.callbacks.ALIM(noise_rate=0.3, warmup_epochs=5)])
    ```

    Reference:
    - [Feng et al., 2020](https://arxiv.org/abs/2007.08929)
    """

    default_norm = "scale"
    default_momentum = (0.0, 0.0)
    refresh_when = "after_step"
