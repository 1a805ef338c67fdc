"""Backbones, from an image to a feature vector, and heads."""

from alim_keras.networks.cifar import BatchNormalization
from alim_keras.networks.cifar import cifar_resnet18
from alim_keras.networks.cifar import cifar_wide_resnet34_10
from alim_keras.networks.pretrained import Backbone
from alim_keras.networks.pretrained import application
from alim_keras.networks.pretrained import find
from alim_keras.networks.pretrained import make_backbone
from alim_keras.networks.pretrained import train_last
from alim_keras.networks.pretrained import unit_features
from alim_keras.networks.pretrained import with_unit_features
from alim_keras.networks.small import CrossFittedHeads
from alim_keras.networks.small import ImageStatistics
from alim_keras.networks.small import classifier_head
from alim_keras.networks.small import image_statistics
from alim_keras.networks.small import mlp
from alim_keras.networks.small import projection_head
from alim_keras.networks.small import small_cnn
